-- In the order in which attempts are counted, so that two of these never wait for each other in a circle.
WITH counted AS MATERIALIZED (
    SELECT key FROM login_attempts WHERE key = ANY ($1) AND attempts > 0 ORDER BY key FOR UPDATE
)
UPDATE login_attempts SET attempts = attempts - 1 FROM counted WHERE login_attempts.key = counted.key
