-- A repeated begin finds the upload of the first: the key is the same, only the URL is fresh. Nobody finds another's:
-- its URL would let them write what somebody else commits.
WITH known AS (
    UPDATE state_uploads SET url_expires_at = plumbline_now() + $14 * interval '1 second'
    WHERE workspace_id = $2 AND lock_id = $5 AND sha256 = $9 AND serial = $7 AND status = 'pending'
      AND run_id IS NOT DISTINCT FROM $13 AND created_by IS NOT DISTINCT FROM $15
    RETURNING id, key
), made AS (
    INSERT INTO state_uploads (id, business_unit_id, workspace_id, generation, lock_id, key, serial, lineage, sha256,
                               md5, size_bytes, terraform_version, run_id, created_by, url_expires_at)
    SELECT $3, $1, $2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $15, plumbline_now() + $14 * interval '1 second'
    WHERE NOT EXISTS (SELECT 1 FROM known)
    RETURNING id, key
)
SELECT id, key FROM known UNION ALL SELECT id, key FROM made
