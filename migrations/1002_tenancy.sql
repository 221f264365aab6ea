CREATE TABLE business_units (
    id          uuid PRIMARY KEY,
    slug        text NOT NULL,
    name        text NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    archived_at timestamptz,
    created_at  timestamptz NOT NULL DEFAULT plumbline_now(),
    updated_at  timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT business_units_slug UNIQUE (slug),
    CONSTRAINT business_units_slug_shape CHECK (slug ~ '^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$' AND slug <> 'all')
);

CREATE TABLE users (
    id                   uuid PRIMARY KEY,
    email                text NOT NULL CHECK (email = lower(email) AND length(email) BETWEEN 3 AND 255),
    display_name         text,
    -- NULL: this user cannot sign in with a password.
    password_hash        text,
    must_change_password boolean NOT NULL DEFAULT false,
    -- Who knows the password that must be changed.
    password_set_by      uuid REFERENCES users (id) ON DELETE SET NULL,
    is_superadmin        boolean NOT NULL DEFAULT false,
    disabled_at          timestamptz,
    -- Tokens carry the generation they were made under; raising it ends them all.
    token_generation     integer NOT NULL DEFAULT 1,
    created_at           timestamptz NOT NULL DEFAULT plumbline_now(),
    updated_at           timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT users_email UNIQUE (email)
);

CREATE TABLE memberships (
    user_id          uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    role             text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    PRIMARY KEY (user_id, business_unit_id)
);
CREATE INDEX memberships_unit ON memberships (business_unit_id);

-- One sign-in. Refresh tokens rotate inside it; using an old one ends it.
CREATE TABLE sessions (
    id                 uuid PRIMARY KEY,
    user_id            uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- SHA-256 of the only refresh token that is good now.
    refresh_token_hash bytea NOT NULL,
    refresh_sequence   integer NOT NULL DEFAULT 1,
    expires_at         timestamptz NOT NULL,
    revoked_at         timestamptz,
    revoked_reason     text,
    -- Only where a password opened it does a forced change of the password stand in the way.
    by_password        boolean NOT NULL DEFAULT true,
    -- Where it was opened from, and with what, as far as that is known.
    address            inet,
    user_agent         text CHECK (length(user_agent) <= 255),
    created_at         timestamptz NOT NULL DEFAULT plumbline_now(),
    refreshed_at       timestamptz NOT NULL DEFAULT plumbline_now()
);
CREATE INDEX sessions_user ON sessions (user_id, id);

-- Sign-in attempts in the current minute, by what they are counted under.
CREATE TABLE login_attempts (
    key        text PRIMARY KEY,
    window_at  timestamptz NOT NULL,
    attempts   integer NOT NULL
);

-- What a repeated POST with the same key answers.
CREATE TABLE idempotency_keys (
    principal    text NOT NULL,
    key          text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    -- Method, path and body: the same key with another request is refused.
    request_hash bytea NOT NULL,
    -- NULL while the first request is under way.
    status       integer,
    response     jsonb,
    location     text,
    expires_at   timestamptz NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT plumbline_now(),
    PRIMARY KEY (principal, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);
