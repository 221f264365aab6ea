-- A one-time way in for somebody who has no password yet, or has lost it. One for each person: a new one takes the place
-- of the old one.
CREATE TABLE invites (
    user_id    uuid PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    -- SHA-256: the token itself is shown once and kept nowhere.
    token_hash bytea NOT NULL,
    created_by uuid REFERENCES users (id) ON DELETE SET NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT invites_token UNIQUE (token_hash)
);

-- Who looks at what right now. Lost without harm.
CREATE TABLE user_presence (
    user_id        uuid PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    -- NULL: all of them, as superadmins can.
    viewed_unit_id uuid REFERENCES business_units (id),
    last_seen_at   timestamptz NOT NULL DEFAULT plumbline_now()
);
CREATE INDEX user_presence_seen ON user_presence (last_seen_at);
