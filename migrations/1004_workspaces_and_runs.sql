CREATE TABLE workspaces (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    name             text NOT NULL CHECK (name ~ '^[a-zA-Z0-9][a-zA-Z0-9_./-]{0,254}$'),
    kind             text NOT NULL DEFAULT 'terraform' CHECK (kind IN ('terraform', 'helm')),
    environment      text NOT NULL,
    aws_account_id   text NOT NULL,
    region           text NOT NULL,
    repo_url         text NOT NULL,
    repo_ref         text NOT NULL DEFAULT 'main',
    tf_working_dir   text NOT NULL DEFAULT '.',
    tool             text NOT NULL DEFAULT 'terraform' CHECK (tool IN ('terraform', 'tofu')),
    -- NULL: the newest one found that is new enough.
    tool_version     text,
    tags             jsonb NOT NULL DEFAULT '{}',
    -- Who may write this workspace's state.
    state_writes     text NOT NULL DEFAULT 'runs_only' CHECK (state_writes IN ('runs_only', 'runs_and_people')),
    webhook_enabled  boolean NOT NULL DEFAULT false,
    -- Whose credentials runs get, beside or instead of those of aws_account_id. Foreign keys: 1011.
    state_aws_account_id  text,
    azure_subscription_id text,
    gcp_project_id        text,
    cluster_id            uuid,
    path_status      text NOT NULL DEFAULT 'unknown' CHECK (path_status IN ('ok', 'orphaned', 'unknown')),
    path_checked_at  timestamptz,
    drift_status     text NOT NULL DEFAULT 'unknown' CHECK (drift_status IN ('clean', 'drifted', 'unknown')),
    -- The one run that may change the workspace now.
    active_run_id    uuid,
    blocked_at       timestamptz,
    blocked_reason   text,
    blocked_run_id   uuid,
    -- Rises at every edit: the value behind ETag and If-Match.
    version          integer NOT NULL DEFAULT 1,
    created_by       uuid,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    updated_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT workspaces_unit UNIQUE (business_unit_id, id),
    CONSTRAINT workspaces_identity
        UNIQUE (business_unit_id, aws_account_id, region, environment, repo_url, tf_working_dir),
    CONSTRAINT workspaces_blocked CHECK ((blocked_at IS NULL) = (blocked_reason IS NULL))
);
-- Who uses a cloud account.
CREATE INDEX workspaces_of_state_aws_account ON workspaces (business_unit_id, state_aws_account_id)
    WHERE state_aws_account_id IS NOT NULL;
CREATE INDEX workspaces_of_azure_subscription ON workspaces (business_unit_id, azure_subscription_id)
    WHERE azure_subscription_id IS NOT NULL;
CREATE INDEX workspaces_of_gcp_project ON workspaces (business_unit_id, gcp_project_id) WHERE gcp_project_id IS NOT NULL;
CREATE INDEX workspaces_of_cluster ON workspaces (business_unit_id, cluster_id) WHERE cluster_id IS NOT NULL;

-- Immutable objects in the object store. A row exists before its object does.
CREATE TABLE blobs (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    key              text NOT NULL,
    size_bytes       bigint NOT NULL CHECK (size_bytes >= 0),
    sha256           bytea NOT NULL CHECK (length(sha256) = 32),
    content_type     text NOT NULL,
    -- NULL until the object is known to be there, whole.
    committed_at     timestamptz,
    upload_expires_at timestamptz,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT blobs_unit UNIQUE (business_unit_id, id),
    CONSTRAINT blobs_key UNIQUE (key)
);
CREATE INDEX blobs_pending ON blobs (upload_expires_at) WHERE committed_at IS NULL;

CREATE TABLE runs (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL,
    workspace_id     uuid NOT NULL,
    command          text NOT NULL CHECK (command IN ('plan', 'apply', 'destroy')),
    status           text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'running', 'planning', 'planned',
                         'awaiting_approval', 'applying', 'applied', 'failed', 'cancelled')),
    -- Why the run ended as it did, as one word; the sentence for people is in error.
    status_reason    text,
    error            text,
    -- Waits for its workspace: it has no task yet.
    waiting          boolean NOT NULL DEFAULT false,
    branch           text NOT NULL,
    message          text,
    -- Sealed JSON array of the run's own variables.
    variables_sealed text,
    -- Which cloud credentials each phase got, and why not; never the credentials.
    credentials      jsonb NOT NULL DEFAULT '[]',
    auto_approve_if_no_changes boolean NOT NULL DEFAULT false,
    auto_approve_skip_apply    boolean NOT NULL DEFAULT false,
    allow_destroy    boolean NOT NULL DEFAULT false,
    triggered_by     uuid,
    trigger_source   text NOT NULL DEFAULT 'user',
    -- Pinned by the first clone and by the plan: apply uses exactly these.
    commit_sha       text,
    tool             text,
    tool_version     text,
    lock_file_sha256 bytea,
    base_state_version_id uuid,
    base_lineage     text,
    base_serial      bigint,
    -- What approval binds to.
    plan_sha256      bytea,
    plan_json_sha256 bytea,
    gates_sha256     bytea,
    plan_summary     jsonb,
    has_changes      boolean,
    planned_at       timestamptz,
    plan_expires_at  timestamptz,
    approved_by      uuid,
    approved_at      timestamptz,
    approval_comment text,
    -- The digest of everything that was shown to the approver.
    approved_digest  bytea,
    -- An apply that has begun is never tried again.
    apply_begun_at   timestamptz,
    cancel_requested_at timestamptz,
    cancel_requested_by uuid,
    promoted_from    uuid,
    -- The trace of the request: a run that waits has no task yet that could keep it.
    traceparent      text,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    started_at       timestamptz,
    completed_at     timestamptz,
    CONSTRAINT runs_unit UNIQUE (business_unit_id, id),
    CONSTRAINT runs_workspace FOREIGN KEY (business_unit_id, workspace_id)
        REFERENCES workspaces (business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT runs_waiting CHECK (NOT waiting OR status = 'pending')
);
CREATE INDEX runs_of_unit ON runs (business_unit_id, id DESC);
CREATE INDEX runs_of_workspace ON runs (workspace_id, id DESC);
CREATE INDEX runs_by_status ON runs (business_unit_id, status, id DESC);
CREATE INDEX runs_waiting_for_workspace ON runs (workspace_id, id) WHERE waiting;
CREATE INDEX runs_unapproved ON runs (plan_expires_at) WHERE status = 'awaiting_approval';

CREATE TABLE run_steps (
    business_unit_id uuid NOT NULL,
    run_id           uuid NOT NULL,
    position         smallint NOT NULL,
    phase            text NOT NULL CHECK (phase IN ('plan', 'approval', 'apply')),
    name             text NOT NULL,
    -- The attempt that owns the step now; a retry resets the step.
    attempt          integer NOT NULL DEFAULT 0,
    status           text NOT NULL DEFAULT 'pending'
                         CHECK (status IN ('pending', 'running', 'succeeded', 'failed', 'skipped')),
    summary          jsonb,
    log_bytes        bigint NOT NULL DEFAULT 0,
    log_truncated    boolean NOT NULL DEFAULT false,
    -- Set once the log is whole and moved to the object store.
    log_blob_id      uuid,
    started_at       timestamptz,
    completed_at     timestamptz,
    PRIMARY KEY (run_id, position),
    FOREIGN KEY (business_unit_id, run_id) REFERENCES runs (business_unit_id, id) ON DELETE CASCADE
);
CREATE INDEX run_steps_to_compact ON run_steps (run_id) WHERE log_bytes > 0 AND log_blob_id IS NULL;

-- What an apply reported to be creating, changing or destroying, while it did: all that is left of an apply which never
-- reported its end.
CREATE TABLE touched_resources (
    business_unit_id uuid NOT NULL,
    run_id           uuid NOT NULL,
    address          text NOT NULL,
    -- Terraform's word: create, update, delete…
    action           text NOT NULL,
    -- NULL until the provider has given one.
    resource_id      text,
    reported_at      timestamptz NOT NULL DEFAULT plumbline_now(),
    PRIMARY KEY (run_id, address),
    FOREIGN KEY (business_unit_id, run_id) REFERENCES runs (business_unit_id, id) ON DELETE CASCADE
);

-- The growing log of a step; moved to the object store when the run has ended.
CREATE TABLE log_chunks (
    business_unit_id uuid NOT NULL,
    run_id           uuid NOT NULL,
    position         smallint NOT NULL,
    attempt          integer NOT NULL,
    offset_bytes     bigint NOT NULL CHECK (offset_bytes >= 0),
    bytes            bytea NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    PRIMARY KEY (run_id, position, attempt, offset_bytes),
    FOREIGN KEY (business_unit_id, run_id) REFERENCES runs (business_unit_id, id) ON DELETE CASCADE
);
ALTER TABLE log_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Named outputs of a run, each written once per attempt.
CREATE TABLE artifacts (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL,
    run_id           uuid NOT NULL,
    kind             text NOT NULL CHECK (kind IN ('plan_file', 'plan_text', 'plan_json', 'plan_json_redacted',
                         'lock_file', 'outputs', 'errored_state')),
    attempt          integer NOT NULL,
    lease_token      bigint NOT NULL,
    blob_id          uuid NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT artifacts_once UNIQUE (run_id, kind, lease_token),
    FOREIGN KEY (business_unit_id, run_id) REFERENCES runs (business_unit_id, id) ON DELETE CASCADE,
    FOREIGN KEY (business_unit_id, blob_id) REFERENCES blobs (business_unit_id, id)
);
CREATE INDEX artifacts_blob ON artifacts (blob_id);

-- Both tables are new and empty: nothing is scanned, nobody waits.
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
ALTER TABLE workspaces ADD CONSTRAINT workspaces_active_run FOREIGN KEY (business_unit_id, active_run_id)
    REFERENCES runs (business_unit_id, id) DEFERRABLE INITIALLY DEFERRED;
