-- One hash chain per business unit and one for the platform (its id is all zeros).
CREATE TABLE audit_heads (
    chain_id uuid PRIMARY KEY,
    sequence bigint NOT NULL,
    hash     bytea NOT NULL CHECK (length(hash) = 32)
);

CREATE TABLE audit_entries (
    chain_id         uuid NOT NULL,
    sequence         bigint NOT NULL CHECK (sequence > 0),
    previous_hash    bytea NOT NULL CHECK (length(previous_hash) = 32),
    hash             bytea NOT NULL CHECK (length(hash) = 32),
    -- The bytes that were hashed. The other columns repeat them for search; verification compares both.
    canonical        bytea NOT NULL,
    business_unit_id uuid,
    user_id          uuid,
    action           text NOT NULL,
    resource_type    text NOT NULL,
    resource_id      text NOT NULL,
    workspace_id     uuid,
    run_id           uuid,
    details          jsonb NOT NULL,
    created_at       timestamptz NOT NULL,
    PRIMARY KEY (chain_id, sequence)
);
CREATE INDEX audit_entries_workspace ON audit_entries (workspace_id, sequence DESC) WHERE workspace_id IS NOT NULL;
CREATE INDEX audit_entries_time ON audit_entries (created_at DESC, sequence DESC, chain_id DESC);
CREATE INDEX audit_entries_run ON audit_entries (run_id, sequence DESC) WHERE run_id IS NOT NULL;

-- Signed statements of all heads, chained; copies lie in the object store.
CREATE TABLE audit_checkpoints (
    sequence      bigint PRIMARY KEY,
    body          bytea NOT NULL,
    hash          bytea NOT NULL CHECK (length(hash) = 32),
    signature     bytea NOT NULL,
    key_id        text NOT NULL,
    -- SubjectPublicKeyInfo: says its algorithm, and verifies where the signing key is gone.
    public_key    bytea NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT plumbline_now(),
    stored_at     timestamptz
);
CREATE INDEX audit_checkpoints_unstored ON audit_checkpoints (sequence) WHERE stored_at IS NULL;

-- Appends an entry in one statement: locks the chain's head until the transaction ends (and makes a missing one), puts
-- time and sequence between the three parts of the canonical bytes, and reads the searchable columns out of what was
-- hashed. The time is read under the lock, so it rises along the chain. Runs with its owner's rights: functions append,
-- they can write neither entries nor heads.
CREATE FUNCTION audit_append(chain uuid, before text, middle text, after text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    head      audit_heads%ROWTYPE;
    at        timestamptz;
    canonical text;
    fields    jsonb;
BEGIN
    SELECT * INTO head FROM audit_heads heads WHERE heads.chain_id = chain FOR UPDATE;
    IF NOT FOUND THEN
        -- DO UPDATE, not DO NOTHING: whoever loses the race waits here and then reads the winner's head.
        INSERT INTO audit_heads AS heads (chain_id, sequence, hash)
            VALUES (chain, 0, decode(repeat('00', 32), 'hex'))
            ON CONFLICT (chain_id) DO UPDATE SET sequence = heads.sequence
            RETURNING * INTO head;
    END IF;
    at := plumbline_now();
    canonical := before || to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || middle
        || head.sequence + 1 || after;
    fields := canonical::jsonb;
    INSERT INTO audit_entries (chain_id, sequence, previous_hash, hash, canonical, business_unit_id, user_id, action,
        resource_type, resource_id, workspace_id, run_id, details, created_at)
    VALUES (chain, head.sequence + 1, head.hash, sha256(head.hash || convert_to(canonical, 'UTF8')),
        convert_to(canonical, 'UTF8'), (fields ->> 'business_unit_id')::uuid, (fields ->> 'user_id')::uuid,
        fields ->> 'action', fields ->> 'resource_type', fields ->> 'resource_id', (fields ->> 'workspace_id')::uuid,
        (fields ->> 'run_id')::uuid, fields -> 'details', at);
    RETURN head.sequence + 1;
END $$;

-- The database recomputes what it can and moves the head itself: a defect in the program cannot break a chain, only
-- fail.
CREATE FUNCTION audit_entries_check() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    head audit_heads%ROWTYPE;
BEGIN
    SELECT * INTO head FROM audit_heads WHERE chain_id = NEW.chain_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'audit chain % has no head', NEW.chain_id;
    END IF;
    IF NEW.sequence <> head.sequence + 1 OR NEW.previous_hash <> head.hash THEN
        RAISE EXCEPTION 'audit entry does not follow the head of its chain';
    END IF;
    IF NEW.hash <> sha256(NEW.previous_hash || NEW.canonical) THEN
        RAISE EXCEPTION 'audit entry has a wrong hash';
    END IF;
    UPDATE audit_heads SET sequence = NEW.sequence, hash = NEW.hash WHERE chain_id = NEW.chain_id;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_entries_insert BEFORE INSERT ON audit_entries
    FOR EACH ROW EXECUTE FUNCTION audit_entries_check();

CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP;
END $$;
CREATE TRIGGER audit_entries_append_only BEFORE UPDATE OR DELETE ON audit_entries
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_entries_no_truncate BEFORE TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_checkpoints_no_truncate BEFORE TRUNCATE ON audit_checkpoints
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_checkpoints_no_delete BEFORE DELETE ON audit_checkpoints
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
-- Only stored_at may change.
CREATE TRIGGER audit_checkpoints_no_update
    BEFORE UPDATE OF sequence, body, hash, signature, key_id, public_key, created_at ON audit_checkpoints
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
