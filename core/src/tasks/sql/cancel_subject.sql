WITH found AS MATERIALIZED (
    SELECT * FROM tasks WHERE subject_id = $1 ORDER BY id FOR UPDATE
), removed AS (
    DELETE FROM tasks t USING found WHERE t.id = found.id AND found.status = 'queued'
), history AS (
    INSERT INTO finished_tasks (id, business_unit_id, class, kind, subject_id, payload, priority, outcome, attempts,
        attempts_max, lease_token, dedupe_key, traceparent, requested_by, last_error, replay_of, created_at)
    SELECT id, business_unit_id, class, kind, subject_id, payload, priority, 'cancelled', attempts, attempts_max,
        lease_token, dedupe_key, traceparent, requested_by, last_error, replay_of, created_at
    FROM found WHERE status = 'queued'
), asked AS (
    UPDATE tasks t SET cancel_requested_at = coalesce(t.cancel_requested_at, plumbline_now())
    FROM found WHERE t.id = found.id AND found.status = 'running'
)
SELECT id, lease_token FROM found WHERE status = 'running' ORDER BY id
