-- A person keeps runs away from a workspace. Who is kept as they were called then: whoever meets the lock reads it, and
-- not every role may read people.
ALTER TABLE workspaces
    ADD COLUMN locked_at     timestamptz,
    ADD COLUMN locked_by     uuid,
    ADD COLUMN locked_who    text,
    ADD COLUMN locked_reason text;
-- All rows have four NULLs.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE workspaces ADD CONSTRAINT workspaces_locked
    CHECK (num_nonnulls(locked_at, locked_by, locked_who, locked_reason) IN (0, 4));

-- Retention. Expired: nobody sees it any more; its body goes first, then the row, so that a row without a body is met by
-- nobody and a body without a row cannot be left behind.
ALTER TABLE state_versions ADD COLUMN expired_at timestamptz;
ALTER TABLE quarantined_states ADD COLUMN expired_at timestamptz;
-- When the workspace's history was looked at last.
ALTER TABLE tfstates ADD COLUMN retention_checked_at timestamptz;
CREATE INDEX state_versions_expired ON state_versions (id) WHERE expired_at IS NOT NULL;
CREATE INDEX quarantined_states_expired ON quarantined_states (id) WHERE expired_at IS NOT NULL;
CREATE INDEX state_uploads_settled ON state_uploads (created_at) WHERE status <> 'pending';
CREATE INDEX tfstates_retention ON tfstates (retention_checked_at NULLS FIRST);

-- Which workspaces may read the outputs of another one's state; by default none.
CREATE TABLE state_consumers (
    business_unit_id uuid NOT NULL,
    -- Whose outputs.
    workspace_id     uuid NOT NULL,
    -- Whose runs may read them.
    consumer_id      uuid NOT NULL,
    created_by       uuid,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    PRIMARY KEY (workspace_id, consumer_id),
    CONSTRAINT state_consumers_others CHECK (workspace_id <> consumer_id),
    FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces (business_unit_id, id) ON DELETE CASCADE,
    FOREIGN KEY (business_unit_id, consumer_id) REFERENCES workspaces (business_unit_id, id) ON DELETE CASCADE
);
CREATE INDEX state_consumers_consumer ON state_consumers (business_unit_id, consumer_id);

-- SHA-256 of the password with which the attempt's terraform reads what other workspaces share.
ALTER TABLE executors ADD COLUMN run_password_hash bytea;
CREATE UNIQUE INDEX executors_run_password ON executors (run_password_hash);

-- Who asked for a state's lock again and again while another held it. Written when a LOCK is refused, never when it is
-- granted; derived, so it may be lost.
CREATE UNLOGGED TABLE state_lock_waiters (
    workspace_id     uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    -- The id in the waiter's LockInfo, which it keeps from try to try.
    lock_id          text NOT NULL,
    lock_info        text NOT NULL,
    tries            integer NOT NULL DEFAULT 1,
    first_tried_at   timestamptz NOT NULL DEFAULT plumbline_now(),
    last_tried_at    timestamptz NOT NULL DEFAULT plumbline_now(),
    PRIMARY KEY (workspace_id, lock_id),
    FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces (business_unit_id, id) ON DELETE CASCADE
);
