-- One attempt as the lease sweep judges it, locked; nothing if the attempt is over or somebody else has it in hand.
-- $1 task, $2 lease token, $3 whether leases are in grace. The joins to executors and runs read what no other feature
-- could tell without a second round trip inside the lock; nothing is written there.
SELECT t.id, t.lease_token, t.kind, t.business_unit_id, t.subject_id, t.payload, t.attempts, t.attempts_max,
       t.traceparent, t.requested_by, extract(epoch FROM t.claimed_at - t.run_after)::float8 AS waited_seconds,
       t.lease_phase, t.cancel_requested_at IS NOT NULL AS cancelled,
       t.lease_expires_at <= plumbline_now() AND NOT $3 AS lease_expired,
       coalesce(t.attempt_ends_at <= plumbline_now(), false) AS wall_clock_passed,
       x.id AS executor_id, coalesce(x.status = 'stopped', false) AS executor_stopped,
       (SELECT count(*) FROM executors u
        WHERE u.task_id = t.id AND u.handle IS NOT NULL AND u.traded_at IS NULL) AS unstarted,
       t.kind = 'run_apply' AND EXISTS (
           SELECT 1 FROM runs r WHERE r.id = t.subject_id AND r.apply_begun_at IS NOT NULL) AS apply_begun
FROM tasks t
LEFT JOIN executors x ON x.task_id = t.id AND x.lease_token = t.lease_token
WHERE t.id = $1 AND t.lease_token = $2 AND t.status = 'running'
FOR UPDATE OF t SKIP LOCKED
