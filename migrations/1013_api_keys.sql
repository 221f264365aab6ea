-- Which tokens of CI systems a unit takes for a short key of its own.
CREATE TABLE ci_trust_rules (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    name             text NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    issuer           text NOT NULL CHECK (issuer LIKE 'https://%' OR issuer LIKE 'http://%'),
    audience         text NOT NULL CHECK (length(audience) BETWEEN 1 AND 255),
    -- `*` stands for anything without a colon.
    subject          text NOT NULL CHECK (length(subject) BETWEEN 1 AND 500),
    -- More claims that must have exactly these texts.
    claims           jsonb NOT NULL DEFAULT '{}',
    capability       text NOT NULL CHECK (capability IN ('read', 'plan', 'apply', 'admin')),
    confined         boolean NOT NULL,
    key_minutes      integer NOT NULL CHECK (key_minutes BETWEEN 5 AND 120),
    created_by       uuid REFERENCES users (id) ON DELETE SET NULL,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT ci_trust_rules_unit UNIQUE (business_unit_id, id),
    CONSTRAINT ci_trust_rules_name UNIQUE (business_unit_id, name)
);
CREATE INDEX ci_trust_rules_issuer ON ci_trust_rules (issuer);

CREATE TABLE ci_trust_rule_workspaces (
    business_unit_id uuid NOT NULL,
    trust_rule_id    uuid NOT NULL,
    workspace_id     uuid NOT NULL,
    PRIMARY KEY (trust_rule_id, workspace_id),
    CONSTRAINT ci_trust_rule_workspaces_rule FOREIGN KEY (business_unit_id, trust_rule_id)
        REFERENCES ci_trust_rules (business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT ci_trust_rule_workspaces_workspace FOREIGN KEY (business_unit_id, workspace_id)
        REFERENCES workspaces (business_unit_id, id) ON DELETE CASCADE
);
CREATE INDEX ci_trust_rule_workspaces_workspace ON ci_trust_rule_workspaces (workspace_id);

-- The public keys of the issuers that some rule names: the same for every unit, and no secret.
CREATE TABLE ci_issuers (
    issuer     text PRIMARY KEY,
    jwks       jsonb,
    fetched_at timestamptz
);

-- When a unit last asked for them: each unit asks in its own turn, so that none waits for another's.
CREATE TABLE ci_issuer_wishes (
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    issuer           text NOT NULL REFERENCES ci_issuers (issuer),
    asked_at         timestamptz NOT NULL,
    PRIMARY KEY (business_unit_id, issuer)
);

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
    -- Whose power it borrows; nobody's where a rule gave it to a CI system.
    user_id          uuid REFERENCES users (id) ON DELETE CASCADE,
    trust_rule_id    uuid,
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
    CONSTRAINT api_keys_trust_rule FOREIGN KEY (business_unit_id, trust_rule_id)
        REFERENCES ci_trust_rules (business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT api_keys_power CHECK ((user_id IS NULL) <> (trust_rule_id IS NULL)),
    CONSTRAINT api_keys_rotated CHECK ((rotated_at IS NULL) = (superseded_by_id IS NULL)),
    CONSTRAINT api_keys_revoked CHECK ((revoked_at IS NULL) = (revoked_reason IS NULL))
);
CREATE INDEX api_keys_user ON api_keys (user_id);
CREATE INDEX api_keys_trust_rule ON api_keys (trust_rule_id, expires_at) WHERE trust_rule_id IS NOT NULL;
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
