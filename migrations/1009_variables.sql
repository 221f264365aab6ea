-- Named lists of variables that belong to a business unit and are attached to some of its workspaces, or to all.
CREATE TABLE variable_sets (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    name             text NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    description      text,
    -- Of two sets with the same key the one with the higher priority wins.
    priority         integer NOT NULL DEFAULT 0 CHECK (priority BETWEEN 0 AND 1000),
    all_workspaces   boolean NOT NULL DEFAULT false,
    -- Rises at every edit: the value behind ETag and If-Match.
    version          integer NOT NULL DEFAULT 1,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    updated_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT variable_sets_unit UNIQUE (business_unit_id, id),
    CONSTRAINT variable_sets_name UNIQUE (business_unit_id, name)
);

CREATE TABLE variable_set_workspaces (
    business_unit_id uuid NOT NULL,
    variable_set_id  uuid NOT NULL,
    workspace_id     uuid NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    PRIMARY KEY (variable_set_id, workspace_id),
    FOREIGN KEY (business_unit_id, variable_set_id) REFERENCES variable_sets (business_unit_id, id) ON DELETE CASCADE,
    FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces (business_unit_id, id) ON DELETE CASCADE
);
CREATE INDEX variable_set_workspaces_of_workspace ON variable_set_workspaces (workspace_id);

-- A variable of a unit (neither column set), of a variable set, or of a workspace.
CREATE TABLE variables (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    variable_set_id  uuid,
    workspace_id     uuid,
    -- Whoever it belongs to, in one column: ids of units, sets and workspaces are never the same.
    owner_id         uuid NOT NULL GENERATED ALWAYS AS
                         (coalesce(workspace_id, variable_set_id, business_unit_id)) STORED,
    key              text NOT NULL CHECK (key ~ '^[A-Za-z_][A-Za-z0-9_]{0,254}$'),
    -- Sealed for this row, secret or not.
    value_sealed     text NOT NULL,
    -- Length of the value, for limits that are checked without opening it.
    value_bytes      integer NOT NULL CHECK (value_bytes BETWEEN 0 AND 65536),
    is_secret        boolean NOT NULL,
    is_hcl           boolean NOT NULL,
    description      text,
    version          integer NOT NULL DEFAULT 1,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    updated_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT variables_unit UNIQUE (business_unit_id, id),
    CONSTRAINT variables_key UNIQUE (owner_id, key),
    CONSTRAINT variables_one_owner CHECK (variable_set_id IS NULL OR workspace_id IS NULL),
    CONSTRAINT variables_set FOREIGN KEY (business_unit_id, variable_set_id)
        REFERENCES variable_sets (business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT variables_workspace FOREIGN KEY (business_unit_id, workspace_id)
        REFERENCES workspaces (business_unit_id, id) ON DELETE CASCADE
);
CREATE INDEX variables_of_owner ON variables (owner_id, id DESC);

-- What terraform gets in a run: merged when it first begins, and the same ever after. Keys, sources and flags can be
-- read; the values are sealed. Both NULL before; no values if there are no variables.
ALTER TABLE runs ADD COLUMN pinned_variables jsonb;
ALTER TABLE runs ADD COLUMN pinned_variables_sealed text;
