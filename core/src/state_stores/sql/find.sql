-- A place that was used, and its account as it is now.
SELECT s.bucket, s.region, s.storage_account, s.prefix,
       a.id AS aws_id, a.account_id AS aws_number, a.keys_sealed, a.apply_role_arn, a.external_id, a.oidc_audience,
       a.default_region, a.version AS aws_version,
       z.id AS azure_id, z.subscription_id, z.tenant_id, z.client_id, z.client_secret_sealed, z.version AS azure_version,
       g.id AS gcp_id, g.project_id, g.service_account_sealed, g.version AS gcp_version
FROM state_stores s
LEFT JOIN aws_accounts a ON a.id = s.aws_account_id
LEFT JOIN azure_subscriptions z ON z.id = s.azure_subscription_id
LEFT JOIN gcp_projects g ON g.id = s.gcp_project_id
WHERE s.id = $1
