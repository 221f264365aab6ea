-- One launched executor: one attempt of one task.
CREATE TABLE executors (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    -- No foreign key: the task moves to the history while the executor may still be stopping.
    task_id          uuid NOT NULL,
    lease_token      bigint NOT NULL,
    kind             text NOT NULL,
    subject_id       uuid NOT NULL,
    launcher         text NOT NULL CHECK (launcher IN ('local', 'ecs')),
    -- What the platform calls it: a task ARN, or a pid with its start time.
    handle           text,
    status           text NOT NULL DEFAULT 'launching'
                         CHECK (status IN ('launching', 'live', 'stopping', 'stopped')),
    -- SHA-256 of the token that the executor got for its ticket.
    token_hash       bytea,
    stop_reason      text,
    launched_at      timestamptz NOT NULL DEFAULT plumbline_now(),
    traded_at        timestamptz,
    last_seen_at     timestamptz,
    stop_requested_at timestamptz,
    stopped_at       timestamptz,
    CONSTRAINT executors_unit UNIQUE (business_unit_id, id),
    CONSTRAINT executors_attempt UNIQUE (task_id, lease_token)
);
CREATE INDEX executors_alive ON executors (status) WHERE status <> 'stopped';
CREATE UNIQUE INDEX executors_token ON executors (token_hash);
CREATE INDEX executors_subject ON executors (subject_id);

-- What a launch parameter carries instead of a secret: good once, for one nonce.
CREATE TABLE tickets (
    ticket_hash      bytea PRIMARY KEY CHECK (length(ticket_hash) = 32),
    business_unit_id uuid NOT NULL,
    executor_id      uuid NOT NULL,
    nonce_hash       bytea,
    traded_at        timestamptz,
    voided_at        timestamptz,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT tickets_executor UNIQUE (executor_id),
    FOREIGN KEY (business_unit_id, executor_id) REFERENCES executors (business_unit_id, id) ON DELETE CASCADE
);
