-- How Git is let into the repositories of a unit. The secret is sealed for its row; what is beside it may be shown.
CREATE TABLE git_credentials (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    name             text NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    kind             text NOT NULL CHECK (kind IN ('token', 'ssh_key', 'github_app')),
    transport        text NOT NULL CHECK (transport IN ('https', 'ssh')),
    -- With its port unless that is the transport's own.
    host             text NOT NULL CHECK (host <> ''),
    -- Empty: every repository of the host.
    path_prefix      text NOT NULL,
    username         text,
    public_key       text,
    host_keys        jsonb NOT NULL,
    app_id           text,
    installation_id  bigint,
    api_url          text,
    secret_sealed    text NOT NULL,
    masked_tail      text,
    -- What the last test looked at.
    test_repo_url    text,
    last_used_at     timestamptz,
    version          integer NOT NULL DEFAULT 1,
    created_by       uuid REFERENCES users (id) ON DELETE SET NULL,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    updated_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    UNIQUE (business_unit_id, id),
    CONSTRAINT git_credentials_name UNIQUE (business_unit_id, name),
    -- Of two for the same place nobody could say which is used.
    CONSTRAINT git_credentials_place UNIQUE (business_unit_id, transport, host, path_prefix),
    CONSTRAINT git_credentials_transport CHECK ((kind = 'ssh_key') = (transport = 'ssh')),
    CONSTRAINT git_credentials_token CHECK ((kind = 'token') = (username IS NOT NULL)),
    -- A host whose key is not known is not asked.
    CONSTRAINT git_credentials_ssh CHECK
        (kind <> 'ssh_key' OR (public_key IS NOT NULL AND jsonb_array_length(host_keys) > 0)),
    CONSTRAINT git_credentials_app CHECK
        ((kind = 'github_app') = (app_id IS NOT NULL AND installation_id IS NOT NULL AND api_url IS NOT NULL))
);
