-- $1 class, $2 batch, $3 default cap of a unit, $4 who claims, $5 lease in seconds, $6 wall clock in seconds or NULL,
-- $7 phase, $8 known kinds, $9 executors at most, $10 launches per second.
--
-- Every CTE is MATERIALIZED: a LIMIT inside a joined subquery is run once per outer row by some plans, and then more
-- rows are claimed than asked for. Room is a counter on the row that is locked, never a count(*): after waiting for a
-- lock Postgres looks at the new version of the row, but a subquery still sees the old snapshot.
WITH budget AS MATERIALIZED (
    SELECT LEAST(b.running_room, floor(b.tokens)::int) AS room, b.tokens
    FROM (
        SELECT $9 - l.running AS running_room,
               -- A second's worth of launches may be saved up, and always at least one.
               LEAST(GREATEST($10, 1.0),
                     l.tokens + $10 * GREATEST(0, extract(epoch FROM plumbline_now() - l.refilled_at)::float8)
               ) AS tokens
        FROM launch_budget l
        -- By its key: a table of an unknown size would make the general plan look dear, and the statement would be
        -- planned anew each time, which takes longer than to run it.
        WHERE l.id = 1 AND $1 = 'executor' AND EXISTS (
            SELECT 1 FROM queue_units q
            WHERE q.class = $1 AND q.running < coalesce(q.running_max, $3)
              AND (SELECT t.id FROM tasks t
                   WHERE t.business_unit_id = q.business_unit_id AND t.class = $1 AND t.status = 'queued'
                     AND t.run_after <= (SELECT plumbline_now()) AND t.kind = ANY($8)
                   ORDER BY t.priority, t.run_after, t.id LIMIT 1) IS NOT NULL)
        -- Waits, unlike the locks below; nothing is locked before it, so it cannot be part of a deadlock.
        FOR NO KEY UPDATE OF l
    ) b
), unit AS MATERIALIZED (
    SELECT q.business_unit_id,
           LEAST($2, coalesce(q.running_max, $3) - q.running, (SELECT room FROM budget)) AS room
    FROM (
        SELECT o.business_unit_id
        FROM queue_units o
        WHERE o.class = $1 AND o.running < coalesce(o.running_max, $3)
          AND ($1 <> 'executor' OR (SELECT room FROM budget) > 0)
        ORDER BY o.last_served_at, o.business_unit_id
        -- A fence: units are sorted first, then looked at one after the other, and no further than to the first that
        -- has due work and is not in other hands.
        OFFSET 0
    ) line
    CROSS JOIN LATERAL (
        SELECT u.business_unit_id, u.running_max, u.running
        FROM queue_units u
        WHERE u.business_unit_id = line.business_unit_id AND u.class = $1
          -- Once more: this one is looked at again after the lock, on the newest version of the row.
          AND u.running < coalesce(u.running_max, $3)
        FOR NO KEY UPDATE OF u SKIP LOCKED
    ) q
    -- Not EXISTS, which forgets the order: in the order of the index this is one probe, while a scan of the table
    -- would wade through everything that was claimed before.
    WHERE (SELECT t.id FROM tasks t
           WHERE t.business_unit_id = line.business_unit_id AND t.class = $1 AND t.status = 'queued'
             AND t.run_after <= (SELECT plumbline_now()) AND t.kind = ANY($8)
           ORDER BY t.priority, t.run_after, t.id LIMIT 1) IS NOT NULL
    LIMIT 1
), picked AS MATERIALIZED (
    SELECT t.id
    FROM tasks t
    WHERE t.business_unit_id = (SELECT business_unit_id FROM unit) AND t.class = $1 AND t.status = 'queued'
      AND t.run_after <= (SELECT plumbline_now()) AND t.kind = ANY($8)
    ORDER BY t.priority, t.run_after, t.id
    LIMIT (SELECT room FROM unit)
    FOR NO KEY UPDATE OF t SKIP LOCKED
), served AS (
    -- Also when nothing was picked: the next call must look at another unit.
    UPDATE queue_units q
    SET last_served_at = plumbline_now(), running = q.running + (SELECT count(*) FROM picked)::int
    FROM unit
    WHERE q.business_unit_id = unit.business_unit_id AND q.class = $1
), spent AS (
    UPDATE launch_budget l
    SET running = l.running + (SELECT count(*) FROM picked)::int,
        tokens = budget.tokens - (SELECT count(*) FROM picked),
        refilled_at = plumbline_now()
    FROM budget
    WHERE l.id = 1 AND EXISTS (SELECT 1 FROM picked)
), claimed AS (
    UPDATE tasks t
    SET status = 'running',
        -- Counted when claimed: a task that kills its worker never reports a failure.
        attempts = t.attempts + 1,
        lease_token = t.lease_token + 1,
        lease_phase = $7,
        lease_expires_at = plumbline_now() + make_interval(secs => $5),
        attempt_ends_at = plumbline_now() + make_interval(secs => $6),
        claimed_by = $4,
        claimed_at = plumbline_now(),
        cancel_requested_at = NULL
    -- Not a join: the planner cannot know how few were picked, and where one unit has most of the tasks it would read
    -- the whole table to find them.
    WHERE t.id = ANY(ARRAY(SELECT id FROM picked))
    RETURNING t.*
)
-- A unit without tasks means that others held them all; an inner join would look like an empty queue.
SELECT unit.business_unit_id AS unit_id, c.id, c.lease_token, c.kind, c.business_unit_id, c.subject_id, c.payload,
       c.attempts, c.attempts_max, c.traceparent, c.requested_by,
       extract(epoch FROM c.claimed_at - c.run_after)::float8 AS waited_seconds
FROM unit LEFT JOIN claimed c ON true
ORDER BY c.priority, c.run_after, c.id
