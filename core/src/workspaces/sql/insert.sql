INSERT INTO workspaces
    (id, business_unit_id, name, kind, environment, aws_account_id, region, repo_url, repo_ref, tf_working_dir,
     tool, tool_version, tags, state_writes, webhook_enabled, created_by, state_aws_account_id,
     azure_subscription_id, gcp_project_id, cluster_id, state_backend)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
