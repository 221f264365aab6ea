-- Sign-in through an identity provider.

-- Who a person is at the provider. Both or neither; nobody is two people here.
ALTER TABLE users
    ADD COLUMN oidc_issuer  text CHECK (length(oidc_issuer) BETWEEN 1 AND 2048),
    ADD COLUMN oidc_subject text CHECK (length(oidc_subject) BETWEEN 1 AND 255),
    -- Whether a group made them superadmin: then the group's end takes it away again.
    ADD COLUMN superadmin_by_group boolean NOT NULL DEFAULT false;
-- For whoever must know that there is a password and must not read its hash. People are few: their table is rewritten, and
-- looked through below, in a moment.
-- squawk-ignore adding-field-with-default
ALTER TABLE users ADD COLUMN has_password boolean NOT NULL GENERATED ALWAYS AS (password_hash IS NOT NULL) STORED;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE users ADD CONSTRAINT users_oidc_whole CHECK ((oidc_issuer IS NULL) = (oidc_subject IS NULL));
-- squawk-ignore constraint-missing-not-valid, disallowed-unique-constraint
ALTER TABLE users ADD CONSTRAINT users_oidc UNIQUE (oidc_issuer, oidc_subject);
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE users ADD CONSTRAINT users_superadmin_by_group CHECK (is_superadmin OR NOT superadmin_by_group);

-- Whether a person gave it or a group: what a group gave goes when the person leaves the group.
ALTER TABLE memberships
    ADD COLUMN source text NOT NULL DEFAULT 'manual' CHECK (source IN ('manual', 'oidc'));

-- One return from the provider. Its row is what makes the state, and then the code, good once.
CREATE TABLE oidc_sign_ins (
    -- SHA-256 of the state that went to the provider and came back.
    state_hash      bytea PRIMARY KEY CHECK (length(state_hash) = 32),
    -- Until the provider's answer was believed there is no user and no code.
    user_id         uuid REFERENCES users (id) ON DELETE CASCADE,
    -- SHA-256: the code itself is handed over once and kept nowhere.
    code_hash       bytea CHECK (length(code_hash) = 32),
    -- SHA-256 of the secret of the command line that asked; NULL for a browser.
    cli_challenge   bytea CHECK (length(cli_challenge) = 32),
    -- The generation of the user's tokens when the code was made: ending their sessions ends the code.
    generation      integer,
    code_expires_at timestamptz,
    traded_at       timestamptz,
    -- The session that the code was traded for.
    session_id      uuid REFERENCES sessions (id) ON DELETE SET NULL,
    created_at      timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT oidc_sign_ins_code UNIQUE (code_hash),
    CONSTRAINT oidc_sign_ins_whole CHECK (
        (user_id IS NULL) = (code_hash IS NULL) AND (user_id IS NULL) = (code_expires_at IS NULL)
        AND (user_id IS NULL) = (generation IS NULL)
        AND (code_hash IS NOT NULL OR (cli_challenge IS NULL AND traded_at IS NULL))
    )
);
CREATE INDEX oidc_sign_ins_user ON oidc_sign_ins (user_id);
CREATE INDEX oidc_sign_ins_session ON oidc_sign_ins (session_id);
CREATE INDEX oidc_sign_ins_age ON oidc_sign_ins (created_at);
