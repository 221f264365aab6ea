INSERT INTO login_attempts AS known (key, window_at, attempts)
SELECT key, (SELECT plumbline_now()), 1 FROM unnest($1::text[]) AS key ORDER BY key
ON CONFLICT (key) DO UPDATE SET
    window_at = CASE WHEN known.window_at <= excluded.window_at - interval '1 minute'
                     THEN excluded.window_at ELSE known.window_at END,
    attempts  = CASE WHEN known.window_at <= excluded.window_at - interval '1 minute'
                     THEN 1 ELSE known.attempts + 1 END
RETURNING attempts, ceil(extract(epoch FROM window_at + interval '1 minute' - plumbline_now()))::bigint AS seconds
