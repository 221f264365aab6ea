INSERT INTO audit_entries (
    chain_id, sequence, previous_hash, hash, canonical, business_unit_id, user_id, action, resource_type,
    resource_id, workspace_id, run_id, details, created_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
