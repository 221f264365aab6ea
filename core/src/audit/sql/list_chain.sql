SELECT chain_id, sequence, hash, business_unit_id, user_id, action, resource_type, resource_id, workspace_id, run_id,
       details, created_at
FROM audit_entries
WHERE chain_id = $1
  AND ($2::bigint IS NULL OR sequence < $2)
  AND ($3::uuid IS NULL OR workspace_id = $3)
  AND ($4::uuid IS NULL OR run_id = $4)
  AND ($5::text IS NULL OR action = $5)
ORDER BY sequence DESC
LIMIT $6
