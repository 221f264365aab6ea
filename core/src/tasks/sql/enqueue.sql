WITH unit AS (
    -- ON CONFLICT alone would wait for whoever is changing the row's counter, and be one half of a deadlock.
    INSERT INTO queue_units (business_unit_id, class)
    SELECT $2, $3 WHERE NOT EXISTS (SELECT 1 FROM queue_units WHERE business_unit_id = $2 AND class = $3)
    ON CONFLICT DO NOTHING
)
INSERT INTO tasks (id, business_unit_id, class, kind, subject_id, payload, priority, run_after, attempts_max,
                   dedupe_key, traceparent, requested_by, replay_of)
VALUES ($1, $2, $3, $4, $5, $6, $7, plumbline_now() + make_interval(secs => $8), $9, $10, $11, $12, $13)
-- Not DO NOTHING: the no-op update locks the queued twin until the caller commits. A claim skips locked rows, so the
-- twin cannot start before it can see what this transaction wrote.
ON CONFLICT (business_unit_id, dedupe_key) WHERE status = 'queued'
    DO UPDATE SET dedupe_key = tasks.dedupe_key
RETURNING id
