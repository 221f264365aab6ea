-- The page is cut before anything is joined. Matching reads the rows of the unit from the newest on until the page is full;
-- LIKE over the whole of a unit is what a search for something that is not there costs.
SELECT r.*, w.name AS workspace_name, i.version_id, i.indexed_at
FROM (
    SELECT * FROM resources
    WHERE ($1::uuid IS NULL OR business_unit_id = $1)
      AND ($2::uuid[] IS NULL OR workspace_id = ANY ($2))
      AND ($3::uuid IS NULL OR workspace_id = $3)
      AND ($4::text IS NULL OR type = $4)
      -- A source, or its last parts: `aws`, `hashicorp/aws`.
      AND ($5::text IS NULL OR provider = $5 OR right(provider, length($5) + 1) = '/' || $5)
      AND haystack LIKE ALL ($6::text[])
      AND ($7::uuid IS NULL OR id < $7)
    ORDER BY id DESC LIMIT $8
) r
JOIN workspaces w ON w.id = r.workspace_id
JOIN state_indexes i ON i.workspace_id = r.workspace_id
ORDER BY r.id DESC
