-- The head of a workspace's state and its lock: one row per workspace, never deleted while the workspace lives.
CREATE TABLE tfstates (
    workspace_id        uuid NOT NULL,
    business_unit_id    uuid NOT NULL,
    head_version_id     uuid,
    head_serial         bigint,
    head_lineage        text,
    -- The rest of the head, so that one row lock shows all that a write is judged by: a joined version row could be
    -- newer than the statement's snapshot and be missed.
    head_key            text,
    head_size_bytes     bigint,
    head_md5            bytea,
    head_sha256         bytea,
    -- Rises whenever the lock changes hands; a write with an older generation is late.
    generation          bigint NOT NULL DEFAULT 0,
    lock_id             text,
    -- LockInfo exactly as the holder sent it; answered as it came.
    lock_info           text,
    lock_run_id         uuid,
    lock_executor_id    uuid,
    lock_user_id        uuid,
    locked_at           timestamptz,
    -- The id that was released last: a repeated UNLOCK of it is answered 200.
    last_lock_id        text,
    last_lock_generation bigint,
    -- One shot: the next write may bring another lineage.
    accept_next_lineage boolean NOT NULL DEFAULT false,
    -- The only unique index: with a second one, first uses at the same time could collide in it, and ON CONFLICT
    -- looks at one. A workspace belongs to one unit, so this is unique per workspace, and serves look-ups by it.
    CONSTRAINT tfstates_pkey PRIMARY KEY (workspace_id, business_unit_id),
    CONSTRAINT tfstates_workspace FOREIGN KEY (business_unit_id, workspace_id)
        REFERENCES workspaces (business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT tfstates_head CHECK (num_nonnulls(head_version_id, head_serial, head_lineage, head_key,
        head_size_bytes, head_md5, head_sha256) IN (0, 7)),
    CONSTRAINT tfstates_lock CHECK ((lock_id IS NULL) = (lock_info IS NULL))
) WITH (fillfactor = 70);

-- Every accepted write, immutable.
CREATE TABLE state_versions (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL,
    workspace_id     uuid NOT NULL,
    serial           bigint NOT NULL,
    lineage          text NOT NULL,
    generation       bigint NOT NULL,
    lock_id          text,
    md5              bytea NOT NULL CHECK (length(md5) = 16),
    sha256           bytea NOT NULL CHECK (length(sha256) = 32),
    size_bytes       bigint NOT NULL,
    key              text NOT NULL,
    terraform_version text,
    -- Encrypted by the client: kept, but its resources cannot be read.
    opaque           boolean NOT NULL DEFAULT false,
    run_id           uuid,
    created_by       uuid,
    rolled_back_from uuid,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT state_versions_unit UNIQUE (business_unit_id, id),
    FOREIGN KEY (business_unit_id, workspace_id) REFERENCES tfstates (business_unit_id, workspace_id)
        ON DELETE CASCADE
);
CREATE INDEX state_versions_of_workspace ON state_versions (workspace_id, id DESC);

-- State bodies that came with a lost lock, or contradicted the head: kept until a person decides.
CREATE TABLE quarantined_states (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL,
    workspace_id     uuid NOT NULL,
    reason           text NOT NULL,
    serial           bigint,
    lineage          text,
    lock_id          text,
    md5              bytea NOT NULL,
    sha256           bytea NOT NULL,
    size_bytes       bigint NOT NULL,
    key              text NOT NULL,
    run_id           uuid,
    created_by       uuid,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    resolved_at      timestamptz,
    resolved_by      uuid,
    resolution       text CHECK (resolution IN ('promoted', 'discarded')),
    CONSTRAINT quarantined_states_once UNIQUE (workspace_id, sha256, reason),
    FOREIGN KEY (business_unit_id, workspace_id) REFERENCES tfstates (business_unit_id, workspace_id)
        ON DELETE CASCADE
);
CREATE INDEX quarantined_states_of_workspace ON quarantined_states (workspace_id, id DESC);

-- Large state bodies on their way into the object store.
CREATE TABLE state_uploads (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL,
    workspace_id     uuid NOT NULL,
    generation       bigint NOT NULL,
    lock_id          text NOT NULL,
    run_id           uuid,
    created_by       uuid,
    key              text NOT NULL,
    serial           bigint NOT NULL,
    lineage          text NOT NULL,
    md5              bytea NOT NULL,
    sha256           bytea NOT NULL,
    size_bytes       bigint NOT NULL,
    terraform_version text,
    opaque           boolean NOT NULL DEFAULT false,
    status           text NOT NULL DEFAULT 'pending'
                         CHECK (status IN ('pending', 'committed', 'quarantined', 'abandoned')),
    url_expires_at   timestamptz NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    FOREIGN KEY (business_unit_id, workspace_id) REFERENCES tfstates (business_unit_id, workspace_id)
        ON DELETE CASCADE
);
CREATE INDEX state_uploads_pending ON state_uploads (workspace_id) WHERE status = 'pending';
CREATE INDEX state_uploads_expired ON state_uploads (url_expires_at) WHERE status = 'pending';
