-- No row comes back if another transaction has just made the same one: ask again.
WITH known AS (
    SELECT id FROM state_stores
    WHERE business_unit_id = $2 AND bucket = $6
      AND (aws_account_id, azure_subscription_id, gcp_project_id, region, storage_account, prefix)
          IS NOT DISTINCT FROM ($3, $4, $5, $7, $8, $9)
), made AS (
    INSERT INTO state_stores
        (id, business_unit_id, aws_account_id, azure_subscription_id, gcp_project_id, bucket, region, storage_account, prefix)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 WHERE NOT EXISTS (SELECT 1 FROM known)
    ON CONFLICT ON CONSTRAINT state_stores_place DO NOTHING
    RETURNING id
)
SELECT id FROM known UNION ALL SELECT id FROM made
