WITH used AS (
    -- At most once a minute: a busy key must not write at every request.
    UPDATE api_keys SET last_used_at = plumbline_now()
    WHERE token_hash = $1 AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > plumbline_now())
      AND (last_used_at IS NULL OR last_used_at < plumbline_now() - interval '1 minute')
)
SELECT key.id, key.name, key.business_unit_id, key.capability, key.user_id,
       key.revoked_at IS NOT NULL AS revoked, coalesce(key.expires_at <= clock.at, false) AS expired,
       key.epoch <> installation.epoch AS outdated, unit.archived_at IS NOT NULL AS unit_archived,
       CASE WHEN key.confined
            THEN ARRAY(SELECT workspace_id FROM api_key_workspaces WHERE api_key_id = key.id) END AS workspaces,
       CASE WHEN users.disabled_at IS NOT NULL THEN NULL
            WHEN users.is_superadmin THEN 'admin'
            ELSE memberships.role END AS owner_role,
       clock.at
FROM api_keys key
JOIN business_units unit ON unit.id = key.business_unit_id
JOIN users ON users.id = key.user_id
JOIN installation ON installation.id = 1
CROSS JOIN (SELECT plumbline_now() AS at) AS clock
LEFT JOIN memberships
    ON memberships.user_id = key.user_id AND memberships.business_unit_id = key.business_unit_id
WHERE key.token_hash = $1
