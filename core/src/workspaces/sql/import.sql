INSERT INTO workspaces
    (id, business_unit_id, created_by, repo_url, repo_ref, path_status, path_checked_at,
     name, kind, environment, aws_account_id, region, tf_working_dir, azure_subscription_id, gcp_project_id)
SELECT new.id, $2, $3, $4, $5, 'ok', plumbline_now(),
       new.name, new.kind, new.environment, new.account, new.region, new.dir,
       -- What a path names is linked if the unit has registered it.
       (SELECT s.subscription_id FROM azure_subscriptions s
        WHERE s.business_unit_id = $2 AND s.subscription_id = new.subscription),
       (SELECT p.project_id FROM gcp_projects p WHERE p.business_unit_id = $2 AND p.project_id = new.project)
FROM unnest($1::uuid[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[],
            $13::text[])
     AS new (id, name, kind, environment, account, region, dir, subscription, project)
-- Both ways of being there already: another workspace with this identity, or this very one from an earlier attempt.
ON CONFLICT DO NOTHING
RETURNING id
