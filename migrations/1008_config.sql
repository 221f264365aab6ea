-- Tunables of the platform. A row stays when its value is taken away, so that its version never comes twice.
CREATE TABLE platform_config (
    key        text PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 100),
    -- The place that a sealed value is bound to.
    id         uuid NOT NULL,
    value      jsonb,
    sealed     text,
    version    integer NOT NULL DEFAULT 0,
    -- No reference: what somebody set stays when they go.
    updated_by uuid,
    updated_at timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT platform_config_id UNIQUE (id),
    CONSTRAINT platform_config_one_value CHECK (value IS NULL OR sealed IS NULL)
);

-- What each unit says of its integrations. A table of its own: no statement can mix it up with the platform's.
CREATE TABLE unit_config (
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    key              text NOT NULL CHECK (length(key) BETWEEN 1 AND 100),
    id               uuid NOT NULL,
    value            jsonb,
    sealed           text,
    version          integer NOT NULL DEFAULT 0,
    updated_by       uuid,
    updated_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    PRIMARY KEY (business_unit_id, key),
    CONSTRAINT unit_config_id UNIQUE (business_unit_id, id),
    CONSTRAINT unit_config_one_value CHECK (value IS NULL OR sealed IS NULL)
);

-- Every change of a value. Of a secret it says that there was one, and nothing of what it was.
CREATE TABLE platform_config_history (
    id         uuid PRIMARY KEY,
    key        text NOT NULL REFERENCES platform_config (key),
    version    integer NOT NULL,
    change     text NOT NULL CHECK (change IN ('set', 'replaced', 'deleted')),
    is_secret  boolean NOT NULL,
    old_value  jsonb,
    new_value  jsonb,
    changed_by uuid,
    changed_at timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT platform_config_history_no_secret CHECK (NOT is_secret OR (old_value IS NULL AND new_value IS NULL))
);
CREATE INDEX platform_config_history_key ON platform_config_history (key, id DESC);

CREATE TABLE unit_config_history (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL,
    key              text NOT NULL,
    version          integer NOT NULL,
    change           text NOT NULL CHECK (change IN ('set', 'replaced', 'deleted')),
    is_secret        boolean NOT NULL,
    old_value        jsonb,
    new_value        jsonb,
    changed_by       uuid,
    changed_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT unit_config_history_unit UNIQUE (business_unit_id, id),
    CONSTRAINT unit_config_history_key FOREIGN KEY (business_unit_id, key)
        REFERENCES unit_config (business_unit_id, key),
    CONSTRAINT unit_config_history_no_secret CHECK (NOT is_secret OR (old_value IS NULL AND new_value IS NULL))
);
CREATE INDEX unit_config_history_changes ON unit_config_history (business_unit_id, key, id DESC);

-- What access tokens are signed with. One signs at a time; those before it are still accepted until their time is over.
CREATE TABLE jwt_secrets (
    -- `kid` in the header of the tokens that it signed.
    id             uuid PRIMARY KEY,
    sealed         text NOT NULL,
    created_by     uuid,
    created_at     timestamptz NOT NULL DEFAULT plumbline_now(),
    retired_at     timestamptz,
    accepted_until timestamptz,
    CONSTRAINT jwt_secrets_retired CHECK ((retired_at IS NULL) = (accepted_until IS NULL))
);
CREATE UNIQUE INDEX jwt_secrets_signing ON jwt_secrets ((1)) WHERE retired_at IS NULL;
