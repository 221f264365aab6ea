-- Only what differs is written: most of a state is the same from one version to the next.
INSERT INTO resources AS old (id, business_unit_id, workspace_id, address, mode, type, name, module, provider, index_key,
                              resource_id, arn, names, haystack)
SELECT r.id, $1, $2, r.address, r.mode, r.type, r.name, r.module, r.provider, r.index_key, r.resource_id, r.arn, r.names,
       r.haystack
FROM jsonb_to_recordset($3::text::jsonb) AS r (id uuid, address text, mode text, type text, name text, module text,
    provider text, index_key text, resource_id text, arn text, names jsonb, haystack text)
ON CONFLICT (workspace_id, address) DO UPDATE SET
    mode = excluded.mode, type = excluded.type, name = excluded.name, module = excluded.module,
    provider = excluded.provider, index_key = excluded.index_key, resource_id = excluded.resource_id,
    arn = excluded.arn, names = excluded.names, haystack = excluded.haystack
WHERE (old.mode, old.type, old.name, old.module, old.provider, old.index_key, old.resource_id, old.arn, old.names,
       old.haystack)
    IS DISTINCT FROM (excluded.mode, excluded.type, excluded.name, excluded.module, excluded.provider,
                      excluded.index_key, excluded.resource_id, excluded.arn, excluded.names, excluded.haystack)
