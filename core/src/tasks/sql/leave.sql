-- The only way out of 'running', for tasks of one unit at a time: two statements that lock several units could wait for
-- each other. One element per task: $1 id, $2 lease token, $3 outcome or NULL to queue it again, $4 error, $5 result,
-- $6 delay in seconds, $7 attempts to take back. Tasks move and the counters fall together or not at all; what is not
-- held under its token any more is left alone and not returned.
WITH held AS MATERIALIZED (
    SELECT t.*, l.error, l.result, l.delay, l.unburned,
           -- While it ran, a newer task with the same key may have been queued: then that one does the work.
           coalesce(l.outcome, CASE WHEN EXISTS (
               SELECT 1 FROM tasks twin
               WHERE twin.business_unit_id = t.business_unit_id AND twin.dedupe_key = t.dedupe_key
                 AND twin.status = 'queued') THEN 'superseded' END) AS outcome
    -- The ids in a query of their own: a plan for any arrays looks as dear as one for these, and is kept.
    FROM unnest((SELECT $1::uuid[]), $2::bigint[], $3::text[], $4::text[], $5::jsonb[], $6::float8[], $7::int[])
        AS l (id, token, outcome, error, result, delay, unburned)
    -- A lease is what being 'running' means to the schema. Asked for the status, the planner would rather walk the
    -- index of all running tasks, which claims and ends fill with dead rows.
    JOIN tasks t ON t.id = l.id AND t.lease_token = l.token AND t.lease_expires_at IS NOT NULL
    ORDER BY t.id
    FOR UPDATE OF t
), lowered AS (
    UPDATE queue_units q SET running = q.running - gone.tasks
    FROM (SELECT business_unit_id, class, count(*)::int AS tasks FROM held GROUP BY 1, 2) gone
    WHERE q.business_unit_id = gone.business_unit_id AND q.class = gone.class
), freed AS (
    UPDATE launch_budget l SET running = l.running - gone.tasks
    FROM (SELECT count(*)::int AS tasks FROM held WHERE class = 'executor') gone
    WHERE l.id = 1 AND gone.tasks > 0
), requeued AS (
    UPDATE tasks t
    SET status = 'queued', attempts = t.attempts - held.unburned,
        run_after = plumbline_now() + make_interval(secs => held.delay),
        lease_expires_at = NULL, lease_phase = NULL, attempt_ends_at = NULL, claimed_by = NULL, claimed_at = NULL,
        last_error = coalesce(held.error, t.last_error)
    FROM held WHERE t.id = held.id AND held.outcome IS NULL
), removed AS (
    DELETE FROM tasks t USING held WHERE t.id = held.id AND held.outcome IS NOT NULL
), history AS (
    INSERT INTO finished_tasks (id, business_unit_id, class, kind, subject_id, payload, priority, outcome, attempts,
        attempts_max, lease_token, dedupe_key, traceparent, requested_by, last_error, replay_of, result, created_at,
        claimed_at)
    -- A login that came with the request is kept only where a replay could need it.
    SELECT id, business_unit_id, class, kind, subject_id,
        CASE WHEN outcome = 'dead' THEN payload ELSE payload - 'login_sealed' END, priority, outcome, attempts, attempts_max,
        lease_token, dedupe_key, traceparent, requested_by, coalesce(error, last_error), replay_of, result, created_at,
        claimed_at
    FROM held WHERE outcome IS NOT NULL
)
SELECT id FROM held
