-- The tail belongs to the secret: both stay, or both go.
UPDATE git_credentials
SET name = $2, path_prefix = $3, username = $4, public_key = $5, host_keys = $6, app_id = $7, installation_id = $8,
    api_url = $9, secret_sealed = coalesce($10, secret_sealed),
    masked_tail = CASE WHEN $10::text IS NULL THEN masked_tail ELSE $11 END,
    version = version + 1, updated_at = plumbline_now()
WHERE id = $1
