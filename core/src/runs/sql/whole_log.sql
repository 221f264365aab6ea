-- One statement, so that the sweep cannot move the log away between the pointer and the chunks.
SELECT s.log_bytes, b.key,
       CASE WHEN s.log_blob_id IS NULL AND s.log_bytes <= $3 THEN
           (SELECT string_agg(c.bytes, ''::bytea ORDER BY c.offset_bytes) FROM log_chunks c
            WHERE c.run_id = s.run_id AND c.position = s.position AND c.attempt = s.attempt)
       END AS bytes
FROM run_steps s LEFT JOIN blobs b ON b.id = s.log_blob_id
WHERE s.run_id = $1 AND s.position = $2
