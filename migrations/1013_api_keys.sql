-- Credentials of programs, each of one business unit. Only the digest of a token is kept.
CREATE TABLE api_keys (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    name             text NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    -- The first characters of the token, so that people can tell keys apart.
    token_prefix     text NOT NULL,
    token_hash       bytea NOT NULL CHECK (length(token_hash) = 32),
    capability       text NOT NULL CHECK (capability IN ('read', 'plan', 'apply', 'admin')),
    -- Whether it reaches only what api_key_workspaces lists: nothing, once those workspaces are gone.
    confined         boolean NOT NULL,
    -- Whose power it borrows.
    user_id          uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_by       uuid REFERENCES users (id) ON DELETE SET NULL,
    -- The installation's epoch that the token was made in.
    epoch            integer NOT NULL,
    expires_at       timestamptz,
    revoked_at       timestamptz,
    revoked_reason   text,
    -- At most one minute behind.
    last_used_at     timestamptz,
    rotated_at       timestamptz,
    superseded_by_id uuid,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT api_keys_unit UNIQUE (business_unit_id, id),
    CONSTRAINT api_keys_token UNIQUE (token_hash),
    CONSTRAINT api_keys_successor
        FOREIGN KEY (business_unit_id, superseded_by_id) REFERENCES api_keys (business_unit_id, id),
    CONSTRAINT api_keys_rotated CHECK ((rotated_at IS NULL) = (superseded_by_id IS NULL)),
    CONSTRAINT api_keys_revoked CHECK ((revoked_at IS NULL) = (revoked_reason IS NULL))
);
CREATE INDEX api_keys_user ON api_keys (user_id);
CREATE INDEX api_keys_superseded_by ON api_keys (superseded_by_id) WHERE superseded_by_id IS NOT NULL;

CREATE TABLE api_key_workspaces (
    business_unit_id uuid NOT NULL,
    api_key_id       uuid NOT NULL,
    workspace_id     uuid NOT NULL,
    PRIMARY KEY (api_key_id, workspace_id),
    CONSTRAINT api_key_workspaces_key FOREIGN KEY (business_unit_id, api_key_id)
        REFERENCES api_keys (business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT api_key_workspaces_workspace FOREIGN KEY (business_unit_id, workspace_id)
        REFERENCES workspaces (business_unit_id, id) ON DELETE CASCADE
);
CREATE INDEX api_key_workspaces_workspace ON api_key_workspaces (workspace_id);
