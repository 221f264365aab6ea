WITH opened AS (
    INSERT INTO sessions (id, user_id, refresh_token_hash, expires_at, address, user_agent, by_password)
    SELECT $1, users.id, $4, plumbline_now() + $5 * interval '1 microsecond', ($7::text)::inet, $8, $9
    FROM users
    -- The hash is compared once more: the password may have been changed while it was being checked.
    WHERE users.id = $2 AND (NOT $9 OR users.password_hash = $3) AND users.disabled_at IS NULL
      AND users.token_generation = $6
    -- A change that is under way ends the sessions that it sees: this one waits for it, and looks again.
    FOR SHARE
    RETURNING user_id
)
SELECT plumbline_now() AS at FROM opened
