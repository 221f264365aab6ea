-- Begins with the secret that the token names: whether the token is genuine is known only with it, and is told first.
SELECT secret.sealed, secret.accepted_until IS NULL OR secret.accepted_until > clock.at AS secret_accepted,
       users.email, users.is_superadmin, users.disabled_at IS NOT NULL AS disabled, users.token_generation,
       users.must_change_password AND sessions.by_password AS must_change_password,
       installation.epoch, clock.at, sessions.revoked_at IS NULL AND sessions.expires_at > clock.at AS session_live,
       unit.id AS unit_id, unit.role AS unit_role, unit.archived AS unit_archived
FROM jwt_secrets secret
JOIN installation ON installation.id = 1
CROSS JOIN (SELECT plumbline_now() AS at) AS clock
LEFT JOIN (sessions JOIN users ON users.id = sessions.user_id) ON sessions.id = $1 AND sessions.user_id = $2
LEFT JOIN LATERAL (
    (SELECT named.id, memberships.role, named.archived_at IS NOT NULL AS archived
     FROM business_units named
     LEFT JOIN memberships ON memberships.business_unit_id = named.id AND memberships.user_id = users.id
     WHERE named.slug = $3)
    UNION ALL
    (SELECT own.id, memberships.role, own.archived_at IS NOT NULL
     FROM memberships
     JOIN business_units own ON own.id = memberships.business_unit_id
     -- In a query of its own: known at planning time, it would make this plan cheaper than the general one, and every
     -- request would be planned.
     WHERE (SELECT $3::text) IS NULL AND memberships.user_id = users.id
     -- An archived one only where there is no other, so that they are told why they cannot act.
     ORDER BY own.archived_at IS NOT NULL, own.slug
     LIMIT 1)
) AS unit ON true
WHERE secret.id = $4
