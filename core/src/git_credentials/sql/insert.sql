INSERT INTO git_credentials (id, business_unit_id, name, kind, transport, host, path_prefix, username, public_key,
    host_keys, app_id, installation_id, api_url, secret_sealed, masked_tail, created_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
