UPDATE workspaces
SET name = $3, environment = $4, aws_account_id = $5, region = $6, repo_url = $7, repo_ref = $8,
    tf_working_dir = $9, tool = $10, tool_version = $11, tags = $12, state_writes = $13, webhook_enabled = $14,
    state_aws_account_id = $15, azure_subscription_id = $16, gcp_project_id = $17, cluster_id = $18, state_backend = $19,
    version = version + 1, updated_at = plumbline_now()
WHERE id = $1 AND version = $2
