-- The step's length is the guard: a chunk is accepted only where the log ends, and only from the attempt that holds
-- the lease.
WITH step AS (
    UPDATE run_steps s SET log_bytes = s.log_bytes + length($5::bytea)
    FROM tasks t
    WHERE s.run_id = $1 AND s.position = $2 AND s.phase = $3 AND s.log_bytes = $4
      AND t.id = $6 AND t.lease_token = $7 AND t.status = 'running'
    RETURNING s.business_unit_id, s.run_id, s.position, s.attempt, s.log_bytes
),
chunk AS (
    INSERT INTO log_chunks (business_unit_id, run_id, position, attempt, offset_bytes, bytes)
    SELECT business_unit_id, run_id, position, attempt, $4, $5 FROM step
)
SELECT log_bytes FROM step
