-- Everything that reaches a workspace but its runs' own: what wins is decided elsewhere. Each part is found by its own
-- index.
SELECT v.id, v.key, v.value_bytes, v.is_secret, v.is_hcl, v.workspace_id,
       NULL::uuid AS set_id, NULL::text AS set_name, NULL::integer AS set_priority
FROM variables v
WHERE v.owner_id = ANY (ARRAY[$1::uuid, $2::uuid])
UNION ALL
SELECT v.id, v.key, v.value_bytes, v.is_secret, v.is_hcl, v.workspace_id, s.id, s.name, s.priority
FROM variable_sets s JOIN variables v ON v.owner_id = s.id
WHERE s.business_unit_id = $1
  AND (s.all_workspaces
       OR EXISTS (SELECT 1 FROM variable_set_workspaces a WHERE a.variable_set_id = s.id AND a.workspace_id = $2))
