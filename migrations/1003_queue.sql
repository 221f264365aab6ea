-- One row per business unit and class: what the fair claim locks. No foreign key points here, so inserting tasks
-- never waits for a claim and a claim never waits for inserts.
CREATE TABLE queue_units (
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    class            text NOT NULL CHECK (class IN ('executor', 'short')),
    -- NULL: the installation's default, which the claim brings along.
    running_max      integer CHECK (running_max >= 0),
    running          integer NOT NULL DEFAULT 0 CHECK (running >= 0),
    last_served_at   timestamptz NOT NULL DEFAULT 'epoch',
    PRIMARY KEY (business_unit_id, class)
) WITH (fillfactor = 50);

-- Live tasks only; a finished task moves to finished_tasks in the transaction that finishes it.
CREATE TABLE tasks (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    class            text NOT NULL CHECK (class IN ('executor', 'short')),
    kind             text NOT NULL,
    -- The row that the task is about: a run, a workspace. No foreign key: a task outlives nothing.
    subject_id       uuid NOT NULL,
    payload          jsonb NOT NULL DEFAULT '{}',
    priority         integer NOT NULL DEFAULT 100,
    run_after        timestamptz NOT NULL DEFAULT plumbline_now(),
    status           text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running')),
    attempts         integer NOT NULL DEFAULT 0,
    attempts_max     integer NOT NULL CHECK (attempts_max > 0),
    -- The fencing token: rises at every claim, carried by every later write.
    lease_token      bigint NOT NULL DEFAULT 0,
    lease_expires_at timestamptz,
    -- 'launching' until the executor trades its ticket, then 'live'; 'unresponsive' is a started apply past its lease.
    lease_phase      text CHECK (lease_phase IN ('launching', 'live', 'unresponsive')),
    -- When this attempt must be over, no matter how alive it looks.
    attempt_ends_at  timestamptz,
    claimed_by       text,
    claimed_at       timestamptz,
    cancel_requested_at timestamptz,
    dedupe_key       text NOT NULL,
    traceparent      text,
    requested_by     uuid,
    last_error       text,
    replay_of        uuid,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT tasks_running_has_lease CHECK ((status = 'running') = (lease_expires_at IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX tasks_due ON tasks (business_unit_id, class, priority, run_after, id) WHERE status = 'queued';
CREATE UNIQUE INDEX tasks_dedupe ON tasks (business_unit_id, dedupe_key) WHERE status = 'queued';
CREATE INDEX tasks_subject ON tasks (subject_id);
CREATE INDEX tasks_running ON tasks (class) WHERE status = 'running';

-- History. Nothing references it; retention deletes from it.
CREATE TABLE finished_tasks (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL,
    class            text NOT NULL,
    kind             text NOT NULL,
    subject_id       uuid NOT NULL,
    payload          jsonb NOT NULL,
    priority         integer NOT NULL,
    outcome          text NOT NULL CHECK (outcome IN ('done', 'dead', 'cancelled', 'superseded')),
    attempts         integer NOT NULL,
    attempts_max     integer NOT NULL,
    lease_token      bigint NOT NULL,
    dedupe_key       text NOT NULL,
    traceparent      text,
    requested_by     uuid,
    last_error       text,
    replay_of        uuid,
    -- What a short task found; large results are in the object store and only named here.
    result           jsonb,
    created_at       timestamptz NOT NULL,
    claimed_at       timestamptz,
    finished_at      timestamptz NOT NULL DEFAULT plumbline_now()
);
CREATE INDEX finished_tasks_unit ON finished_tasks (business_unit_id, id);
CREATE INDEX finished_tasks_subject ON finished_tasks (subject_id);
CREATE INDEX finished_tasks_age ON finished_tasks (finished_at);

-- Launch rate and global executor cap. One row; only claims of the executor class lock it.
CREATE TABLE launch_budget (
    -- A number, so that the planner knows how many rows "= 1" gives.
    id            smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    running       integer NOT NULL DEFAULT 0 CHECK (running >= 0),
    tokens        double precision NOT NULL DEFAULT 0,
    -- A new bucket is full.
    refilled_at   timestamptz NOT NULL DEFAULT 'epoch'
) WITH (fillfactor = 50);
INSERT INTO launch_budget DEFAULT VALUES;
