SELECT chain_id, sequence, hash, business_unit_id, user_id, action, resource_type, resource_id, workspace_id, run_id,
       details, created_at
FROM audit_entries
WHERE ($10::bigint IS NULL
       OR (created_at, sequence, chain_id) < ('epoch'::timestamptz + $10 * interval '1 microsecond', $11, $12))
  AND ($2::uuid IS NULL OR workspace_id = $2)
  AND ($3::uuid IS NULL OR run_id = $3)
  AND ($4::text IS NULL OR action = $4)
  AND ($5::uuid IS NULL OR user_id = $5)
  AND ($6::text IS NULL OR resource_type = $6)
  AND ($7::text IS NULL OR resource_id = $7)
  AND ($8::timestamptz IS NULL OR created_at >= $8)
  AND ($9::timestamptz IS NULL OR created_at < $9)
ORDER BY created_at DESC, sequence DESC, chain_id DESC
LIMIT $1
