-- A root key is being replaced: every sealed value is sealed again under the current root's keys, while everything runs.
CREATE TABLE rekeys (
    id           uuid PRIMARY KEY,
    -- Names the root under which everything is sealed in the end.
    key_id       text NOT NULL,
    status       text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'failed', 'superseded')),
    requested_by uuid,
    -- Why it does not move, for people.
    note         text,
    created_at   timestamptz NOT NULL DEFAULT plumbline_now(),
    -- When a value was last sealed again.
    resealed_at  timestamptz,
    finished_at  timestamptz,
    CONSTRAINT rekeys_finished CHECK ((status = 'running') = (finished_at IS NULL))
);
CREATE UNIQUE INDEX rekeys_running ON rekeys (status) WHERE status = 'running';

-- How far each sealed column is. Rows are looked at in the order of their ids, pass after pass.
CREATE TABLE rekey_columns (
    rekey_id    uuid NOT NULL REFERENCES rekeys (id),
    table_name  text NOT NULL,
    column_name text NOT NULL,
    -- The last row of this pass that was looked at.
    position    uuid,
    -- Whether this pass has seen all rows.
    passed      boolean NOT NULL DEFAULT false,
    resealed    bigint NOT NULL DEFAULT 0 CHECK (resealed >= 0),
    -- Values under other roots when they were last counted; NULL until then.
    remaining   bigint,
    -- Rows of this pass whose value no key of the ring opens: how many, and the first of them.
    unreadable  bigint NOT NULL DEFAULT 0 CHECK (unreadable >= 0),
    unreadable_rows uuid[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (rekey_id, table_name, column_name)
);
