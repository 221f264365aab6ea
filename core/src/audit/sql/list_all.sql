SELECT chain_id, sequence, hash, business_unit_id, user_id, action, resource_type, resource_id, workspace_id, run_id,
       details, created_at
FROM audit_entries
WHERE ($1::bigint IS NULL
       OR (created_at, sequence, chain_id) < ('epoch'::timestamptz + $1 * interval '1 microsecond', $2, $3))
  AND ($4::uuid IS NULL OR workspace_id = $4)
  AND ($5::uuid IS NULL OR run_id = $5)
  AND ($6::text IS NULL OR action = $6)
ORDER BY created_at DESC, sequence DESC, chain_id DESC
LIMIT $7
