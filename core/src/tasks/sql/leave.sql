-- The only way out of 'running': $3 is the outcome, or NULL to queue the task again. $4 error, $5 result, $6 delay in
-- seconds, $7 attempts to take back. The task moves and the counters fall together or not at all.
WITH held AS MATERIALIZED (
    SELECT t.*,
           -- While it ran, a newer task with the same key may have been queued: then that one does the work.
           coalesce($3, CASE WHEN EXISTS (
               SELECT 1 FROM tasks twin
               WHERE twin.business_unit_id = t.business_unit_id AND twin.dedupe_key = t.dedupe_key
                 AND twin.status = 'queued') THEN 'superseded' END) AS outcome
    FROM tasks t
    WHERE t.id = $1 AND t.lease_token = $2 AND t.status = 'running'
    FOR UPDATE OF t
), lowered AS (
    UPDATE queue_units q SET running = q.running - 1
    FROM held WHERE q.business_unit_id = held.business_unit_id AND q.class = held.class
), freed AS (
    UPDATE launch_budget l SET running = l.running - 1
    FROM held WHERE held.class = 'executor'
), requeued AS (
    UPDATE tasks t
    SET status = 'queued', attempts = t.attempts - $7,
        run_after = plumbline_now() + make_interval(secs => $6),
        lease_expires_at = NULL, lease_phase = NULL, attempt_ends_at = NULL, claimed_by = NULL, claimed_at = NULL,
        last_error = coalesce($4, t.last_error)
    FROM held WHERE t.id = held.id AND held.outcome IS NULL
), removed AS (
    DELETE FROM tasks t USING held WHERE t.id = held.id AND held.outcome IS NOT NULL
), history AS (
    INSERT INTO finished_tasks (id, business_unit_id, class, kind, subject_id, payload, priority, outcome, attempts,
        attempts_max, lease_token, dedupe_key, traceparent, requested_by, last_error, replay_of, result, created_at,
        claimed_at)
    SELECT id, business_unit_id, class, kind, subject_id, payload, priority, outcome, attempts, attempts_max,
        lease_token, dedupe_key, traceparent, requested_by, coalesce($4, last_error), replay_of, $5, created_at,
        claimed_at
    FROM held WHERE outcome IS NOT NULL
)
SELECT outcome FROM held
