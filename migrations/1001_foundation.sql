-- The clock that decides: leases, due times, expiry. Tests replace this function to move time; nothing else does.
CREATE FUNCTION plumbline_now() RETURNS timestamptz
    LANGUAGE sql VOLATILE PARALLEL SAFE
    AS $$ SELECT clock_timestamp() $$;

-- Facts about this installation. One row.
CREATE TABLE installation (
    -- A number, so that the planner knows how many rows "= 1" gives.
    id         smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    -- Every token carries it; raising it after a restore makes all of them void.
    epoch      integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT plumbline_now()
);
INSERT INTO installation DEFAULT VALUES;

-- One row per sweep: when it last succeeded, and until when leases must not expire after an outage.
CREATE TABLE sweep_ticks (
    name        text PRIMARY KEY,
    last_ok_at  timestamptz NOT NULL,
    grace_until timestamptz
);
