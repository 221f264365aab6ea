SELECT EXISTS (SELECT 1 FROM tfstates WHERE workspace_id = $1 AND lock_id IS NOT NULL) AS locked,
       (SELECT id FROM runs WHERE workspace_id = $1 AND status <> ALL ($2) ORDER BY id LIMIT 1) AS running,
       head.id AS head_id, head.key AS head_key, head.store_id AS head_store_id, coalesce(head.opaque, false) AS head_opaque
FROM workspaces w
LEFT JOIN tfstates t ON t.workspace_id = w.id
LEFT JOIN state_versions head ON head.id = t.head_version_id
WHERE w.id = $1
