-- The accounts that a workspace could keep its state with, all of its own unit, and where they say that states go now.
SELECT w.business_unit_id, w.state_backend,
       a.id AS aws_id, a.account_id AS aws_number, a.keys_sealed, a.apply_role_arn, a.external_id, a.oidc_audience,
       a.default_region, a.version AS aws_version, a.state_bucket, a.state_bucket_region,
       z.id AS azure_id, z.subscription_id, z.tenant_id, z.client_id, z.client_secret_sealed, z.version AS azure_version,
       z.state_storage_account, z.state_container,
       g.id AS gcp_id, g.project_id, g.service_account_sealed, g.version AS gcp_version,
       g.state_bucket AS gcp_state_bucket, g.state_prefix
FROM workspaces w
LEFT JOIN aws_accounts a ON a.business_unit_id = w.business_unit_id
                        AND a.account_id = coalesce(w.state_aws_account_id, w.aws_account_id)
LEFT JOIN azure_subscriptions z ON z.business_unit_id = w.business_unit_id AND z.subscription_id = w.azure_subscription_id
LEFT JOIN gcp_projects g ON g.business_unit_id = w.business_unit_id AND g.project_id = w.gcp_project_id
WHERE w.id = $1
