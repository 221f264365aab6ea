-- One artifact per kind and attempt. The lease is checked in the statement; a second call finds what the first wrote.
WITH held AS (
    SELECT 1 FROM tasks WHERE id = $12 AND lease_token = $11 AND status = 'running'
),
known AS (
    SELECT b.sha256, b.size_bytes
    FROM artifacts a JOIN blobs b ON b.id = a.blob_id
    WHERE a.run_id = $9 AND a.kind = $10 AND a.lease_token = $11
),
blob AS (
    INSERT INTO blobs (id, business_unit_id, key, size_bytes, sha256, content_type, upload_expires_at)
    SELECT $1, $2, $3, $4, $5, $6, plumbline_now() + make_interval(secs => $7)
    FROM held WHERE NOT EXISTS (SELECT 1 FROM known)
    RETURNING id, sha256, size_bytes
),
artifact AS (
    INSERT INTO artifacts (id, business_unit_id, run_id, kind, attempt, lease_token, blob_id)
    SELECT $8, $2, $9, $10, t.attempts, $11, blob.id
    FROM blob, tasks t WHERE t.id = $12
)
SELECT sha256, size_bytes FROM blob
UNION ALL
SELECT sha256, size_bytes FROM known WHERE EXISTS (SELECT 1 FROM held)
