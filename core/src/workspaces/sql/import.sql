INSERT INTO workspaces
    (id, business_unit_id, created_by, repo_url, repo_ref, path_status, path_checked_at,
     name, kind, environment, aws_account_id, region, tf_working_dir)
SELECT new.id, $2, $3, $4, $5, 'ok', plumbline_now(),
       new.name, new.kind, new.environment, new.account, new.region, new.dir
FROM unnest($1::uuid[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
     AS new (id, name, kind, environment, account, region, dir)
-- Both ways of being there already: another workspace with this identity, or this very one from an earlier attempt.
ON CONFLICT DO NOTHING
RETURNING id
