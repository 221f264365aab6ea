SELECT w.id AS workspace_id, w.business_unit_id, w.state_writes,
       w.locked_at AS workspace_locked_at, w.locked_by, w.locked_who, w.locked_reason,
       coalesce(t.generation, 0) AS generation, coalesce(t.accept_next_lineage, false) AS accept_next_lineage,
       t.head_version_id, t.head_serial, t.head_lineage, t.head_key, t.head_store_id, t.head_size_bytes, t.head_md5,
       t.head_sha256, t.head_resource_count,
       t.lock_id, t.lock_info, t.lock_run_id, t.lock_executor_id, t.lock_user_id, t.locked_at, t.last_lock_id,
       -- Every change of the row gives it another xmin.
       coalesce(t.xmin::text::bigint, 0) AS row_version,
       -- Whether new bodies may go elsewhere than to the platform's store. Whoever writes one asks where.
       w.state_backend <> 'platform' AND (
           w.state_backend <> 'automatic'
           OR EXISTS (SELECT 1 FROM aws_accounts a WHERE a.business_unit_id = w.business_unit_id
                        AND a.account_id = coalesce(w.state_aws_account_id, w.aws_account_id)
                        AND a.state_bucket IS NOT NULL)
           OR EXISTS (SELECT 1 FROM azure_subscriptions z WHERE z.business_unit_id = w.business_unit_id
                        AND z.subscription_id = w.azure_subscription_id AND z.state_container IS NOT NULL)
           OR EXISTS (SELECT 1 FROM gcp_projects g WHERE g.business_unit_id = w.business_unit_id
                        AND g.project_id = w.gcp_project_id AND g.state_bucket IS NOT NULL)
       ) AS has_home,
       extract(epoch FROM plumbline_now() - t.locked_at)::bigint AS lock_age_seconds
FROM workspaces w
LEFT JOIN tfstates t ON t.workspace_id = w.id
WHERE w.id = $2 AND ($1::uuid IS NULL OR w.business_unit_id = $1)
