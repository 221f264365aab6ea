-- Only the sweep that sets the pointer removes the chunks; a second one finds the pointer set and changes nothing.
WITH blob AS (
    INSERT INTO blobs (id, business_unit_id, key, size_bytes, sha256, content_type, committed_at)
    VALUES ($4, $5, $6, $7, $8, 'text/plain; charset=utf-8', plumbline_now())
    ON CONFLICT (key) DO NOTHING
    RETURNING id
),
step AS (
    UPDATE run_steps SET log_blob_id = blob.id FROM blob
    WHERE run_id = $1 AND position = $2 AND attempt = $3 AND log_blob_id IS NULL
    RETURNING run_id
)
DELETE FROM log_chunks USING step WHERE log_chunks.run_id = $1 AND position = $2
