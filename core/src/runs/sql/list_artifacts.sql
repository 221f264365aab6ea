-- What the newest attempt that has it produced, of each kind; then the log of each step that has one, which is known by
-- its digest once it is in the object store.
(
    SELECT DISTINCT ON (a.kind) 0::smallint AS place, a.kind AS name, b.size_bytes, b.sha256, a.created_at
    FROM artifacts a JOIN blobs b ON b.id = a.blob_id
    WHERE a.run_id = $1 AND b.committed_at IS NOT NULL
    ORDER BY a.kind, a.lease_token DESC
)
UNION ALL
SELECT s.position, 'log-' || s.position, s.log_bytes, b.sha256, coalesce(s.started_at, r.created_at)
FROM run_steps s JOIN runs r ON r.id = s.run_id LEFT JOIN blobs b ON b.id = s.log_blob_id
WHERE s.run_id = $1 AND s.log_bytes > 0
ORDER BY place, name
