-- What states contain: how many objects each version manages, and an index of the newest one of every workspace.

-- NULL: not counted yet, or the client encrypts it.
ALTER TABLE state_versions ADD COLUMN resource_count bigint;
-- It manages nothing, and the version before it did.
ALTER TABLE state_versions ADD COLUMN emptied boolean NOT NULL DEFAULT false;
-- Why the body cannot be what its writer announced, found after it was accepted.
ALTER TABLE state_versions ADD COLUMN contradiction text;
-- With the rest of the head, so that a write is known to empty the state when it is judged.
ALTER TABLE tfstates ADD COLUMN head_resource_count bigint;

-- Which version of a workspace's state is in the index. A head that is neither this nor the failed one is to be indexed: the
-- head itself is the hint, so that a write costs nothing more.
CREATE TABLE state_indexes (
    workspace_id      uuid NOT NULL,
    business_unit_id  uuid NOT NULL,
    version_id        uuid,
    -- Given up after its task's attempts; the next version is tried again.
    failed_version_id uuid,
    -- Whether the state has more resources than the index takes.
    truncated         boolean NOT NULL DEFAULT false,
    -- Why nothing of this version could be indexed.
    unreadable        text,
    indexed_at        timestamptz,
    CONSTRAINT state_indexes_pkey PRIMARY KEY (workspace_id, business_unit_id),
    FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces (business_unit_id, id) ON DELETE CASCADE
);

-- Resources of the indexed versions. Nothing here may be a secret: see core/src/tfstates/contents/index.rs.
CREATE TABLE resources (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL,
    workspace_id     uuid NOT NULL,
    address          text NOT NULL,
    mode             text NOT NULL CHECK (mode IN ('managed', 'data')),
    type             text NOT NULL,
    name             text NOT NULL,
    module           text,
    provider         text NOT NULL,
    index_key        text,
    resource_id      text,
    arn              text,
    names            jsonb NOT NULL,
    -- In lower case.
    haystack         text NOT NULL,
    CONSTRAINT resources_unit UNIQUE (business_unit_id, id),
    CONSTRAINT resources_once UNIQUE (workspace_id, address),
    FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces (business_unit_id, id) ON DELETE CASCADE
);
