SELECT rule.*,
       CASE WHEN rule.confined
            THEN ARRAY(SELECT workspace_id FROM ci_trust_rule_workspaces
                       WHERE trust_rule_id = rule.id ORDER BY workspace_id) END AS workspaces
FROM ci_trust_rules rule
JOIN business_units unit ON unit.id = rule.business_unit_id AND unit.archived_at IS NULL
WHERE rule.issuer = $1
  AND ($2::text IS NULL OR unit.slug = $2)
  AND ($3::uuid IS NULL OR rule.id = $3)
ORDER BY rule.id
