-- $1 unit, $2 run, $3 addresses (each once), $4 actions, $5 ids or NULL, $6 resources kept of a run. Nothing is written
-- for an apply that has not begun.
INSERT INTO touched_resources (business_unit_id, run_id, address, action, resource_id)
SELECT $1, $2, r.address, r.action, r.resource_id
FROM unnest($3::text[], $4::text[], $5::text[]) AS r (address, action, resource_id)
WHERE EXISTS (SELECT 1 FROM runs WHERE id = $2 AND business_unit_id = $1 AND apply_begun_at IS NOT NULL)
  AND (SELECT count(*) FROM touched_resources WHERE run_id = $2) < $6
ON CONFLICT (run_id, address) DO UPDATE SET
    action = excluded.action,
    -- A repeated early report must not take away an id that is known by now.
    resource_id = coalesce(excluded.resource_id, touched_resources.resource_id),
    reported_at = plumbline_now()
