-- A fresh database after all migrations. Written by `make schema`; a test compares it. Not for running.

CREATE OR REPLACE FUNCTION public.audit_append(chain uuid, before text, middle text, after text)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
END $function$
;

CREATE OR REPLACE FUNCTION public.audit_entries_check()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
    IF NEW.hash <> sha256(NEW.previous_hash || NEW.canonical) THEN
        RAISE EXCEPTION 'audit entry has a wrong hash';
    END IF;
    -- Waits for whoever is moving the head, and then finds it elsewhere.
    UPDATE audit_heads SET sequence = NEW.sequence, hash = NEW.hash
    WHERE chain_id = NEW.chain_id AND sequence = NEW.sequence - 1 AND hash = NEW.previous_hash;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'audit entry does not follow the head of its chain';
    END IF;
    RETURN NEW;
END $function$
;

CREATE OR REPLACE FUNCTION public.audit_refuse()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP;
END $function$
;

CREATE OR REPLACE FUNCTION public.plumbline_now()
 RETURNS timestamp with time zone
 LANGUAGE sql
 PARALLEL SAFE
AS $function$ SELECT clock_timestamp() $function$
;

CREATE TABLE api_key_workspaces (
    business_unit_id uuid NOT NULL,
    api_key_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    CONSTRAINT api_key_workspaces_key FOREIGN KEY (business_unit_id, api_key_id) REFERENCES api_keys(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT api_key_workspaces_pkey PRIMARY KEY (api_key_id, workspace_id),
    CONSTRAINT api_key_workspaces_workspace FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces(business_unit_id, id) ON DELETE CASCADE
);

CREATE TABLE api_keys (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    name text NOT NULL,
    token_prefix text NOT NULL,
    token_hash bytea NOT NULL,
    capability text NOT NULL,
    confined boolean NOT NULL,
    user_id uuid,
    trust_rule_id uuid,
    created_by uuid,
    epoch integer NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    revoked_reason text,
    last_used_at timestamp with time zone,
    rotated_at timestamp with time zone,
    superseded_by_id uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT api_keys_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT api_keys_capability_check CHECK ((capability = ANY (ARRAY['read'::text, 'plan'::text, 'apply'::text, 'admin'::text]))),
    CONSTRAINT api_keys_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id) ON DELETE SET NULL,
    CONSTRAINT api_keys_name_check CHECK (((length(name) >= 1) AND (length(name) <= 255))),
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_power CHECK (((user_id IS NULL) <> (trust_rule_id IS NULL))),
    CONSTRAINT api_keys_revoked CHECK (((revoked_at IS NULL) = (revoked_reason IS NULL))),
    CONSTRAINT api_keys_rotated CHECK (((rotated_at IS NULL) = (superseded_by_id IS NULL))),
    CONSTRAINT api_keys_successor FOREIGN KEY (business_unit_id, superseded_by_id) REFERENCES api_keys(business_unit_id, id),
    CONSTRAINT api_keys_token UNIQUE (token_hash),
    CONSTRAINT api_keys_token_hash_check CHECK ((length(token_hash) = 32)),
    CONSTRAINT api_keys_trust_rule FOREIGN KEY (business_unit_id, trust_rule_id) REFERENCES ci_trust_rules(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT api_keys_unit UNIQUE (business_unit_id, id),
    CONSTRAINT api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);

CREATE TABLE artifacts (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    run_id uuid NOT NULL,
    kind text NOT NULL,
    attempt integer NOT NULL,
    lease_token bigint NOT NULL,
    blob_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT artifacts_business_unit_id_blob_id_fkey FOREIGN KEY (business_unit_id, blob_id) REFERENCES blobs(business_unit_id, id),
    CONSTRAINT artifacts_business_unit_id_run_id_fkey FOREIGN KEY (business_unit_id, run_id) REFERENCES runs(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT artifacts_kind_check CHECK ((kind = ANY (ARRAY['plan_file'::text, 'plan_text'::text, 'plan_json'::text, 'plan_json_redacted'::text, 'lock_file'::text, 'outputs'::text, 'errored_state'::text]))),
    CONSTRAINT artifacts_once UNIQUE (run_id, kind, lease_token),
    CONSTRAINT artifacts_pkey PRIMARY KEY (id)
);

CREATE TABLE audit_checkpoints (
    sequence bigint NOT NULL,
    body bytea NOT NULL,
    hash bytea NOT NULL,
    signature bytea NOT NULL,
    key_id text NOT NULL,
    public_key bytea NOT NULL,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    stored_at timestamp with time zone,
    CONSTRAINT audit_checkpoints_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT audit_checkpoints_pkey PRIMARY KEY (sequence)
);

CREATE TABLE audit_entries (
    chain_id uuid NOT NULL,
    sequence bigint NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL,
    canonical bytea NOT NULL,
    business_unit_id uuid,
    user_id uuid,
    action text NOT NULL,
    resource_type text NOT NULL,
    resource_id text NOT NULL,
    workspace_id uuid,
    run_id uuid,
    details jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT audit_entries_pkey PRIMARY KEY (chain_id, sequence)
);

CREATE TABLE audit_heads (
    chain_id uuid NOT NULL,
    sequence bigint NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT audit_heads_pkey PRIMARY KEY (chain_id)
);

CREATE TABLE aws_accounts (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    account_id text NOT NULL,
    name text NOT NULL,
    description text,
    default_region text NOT NULL,
    state_bucket text,
    state_bucket_region text NOT NULL,
    aws_profile_name text,
    keys_sealed text,
    plan_role_arn text,
    apply_role_arn text,
    external_id text NOT NULL,
    session_duration_seconds integer NOT NULL,
    session_policy jsonb,
    version integer DEFAULT 1 NOT NULL,
    created_by uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    oidc_audience text,
    CONSTRAINT aws_accounts_account UNIQUE (business_unit_id, account_id),
    CONSTRAINT aws_accounts_account_id_check CHECK ((account_id ~ '^[0-9]{12}$'::text)),
    CONSTRAINT aws_accounts_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT aws_accounts_credentials CHECK (((keys_sealed IS NOT NULL) OR (plan_role_arn IS NOT NULL))),
    CONSTRAINT aws_accounts_external_id UNIQUE (external_id),
    CONSTRAINT aws_accounts_name_check CHECK (((length(name) >= 1) AND (length(name) <= 120))),
    CONSTRAINT aws_accounts_pkey PRIMARY KEY (id),
    CONSTRAINT aws_accounts_roles CHECK (((plan_role_arn IS NULL) = (apply_role_arn IS NULL))),
    CONSTRAINT aws_accounts_session_duration_seconds_check CHECK (((session_duration_seconds >= 900) AND (session_duration_seconds <= 43200))),
    CONSTRAINT aws_accounts_trust CHECK (((oidc_audience IS NULL) OR ((keys_sealed IS NULL) AND (plan_role_arn IS NOT NULL)))),
    CONSTRAINT aws_accounts_unit UNIQUE (business_unit_id, id)
);

CREATE TABLE azure_subscriptions (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    subscription_id text NOT NULL,
    tenant_id text NOT NULL,
    client_id text NOT NULL,
    name text NOT NULL,
    description text,
    default_location text NOT NULL,
    state_storage_account text,
    state_container text,
    client_secret_sealed text,
    version integer DEFAULT 1 NOT NULL,
    created_by uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    oidc_audience text,
    CONSTRAINT azure_subscriptions_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT azure_subscriptions_name_check CHECK (((length(name) >= 1) AND (length(name) <= 120))),
    CONSTRAINT azure_subscriptions_pkey PRIMARY KEY (id),
    CONSTRAINT azure_subscriptions_subscription UNIQUE (business_unit_id, subscription_id),
    CONSTRAINT azure_subscriptions_trust CHECK ((num_nonnulls(client_secret_sealed, oidc_audience) = 1)),
    CONSTRAINT azure_subscriptions_unit UNIQUE (business_unit_id, id)
);

CREATE TABLE blobs (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    key text NOT NULL,
    size_bytes bigint NOT NULL,
    sha256 bytea NOT NULL,
    content_type text NOT NULL,
    committed_at timestamp with time zone,
    upload_expires_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT blobs_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT blobs_key UNIQUE (key),
    CONSTRAINT blobs_pkey PRIMARY KEY (id),
    CONSTRAINT blobs_sha256_check CHECK ((length(sha256) = 32)),
    CONSTRAINT blobs_size_bytes_check CHECK ((size_bytes >= 0)),
    CONSTRAINT blobs_unit UNIQUE (business_unit_id, id)
);

CREATE TABLE business_units (
    id uuid NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    archived_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT business_units_name_check CHECK (((length(name) >= 1) AND (length(name) <= 255))),
    CONSTRAINT business_units_pkey PRIMARY KEY (id),
    CONSTRAINT business_units_slug UNIQUE (slug),
    CONSTRAINT business_units_slug_shape CHECK (((slug ~ '^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$'::text) AND (slug <> 'all'::text)))
);

CREATE TABLE ci_issuer_wishes (
    business_unit_id uuid NOT NULL,
    issuer text NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    CONSTRAINT ci_issuer_wishes_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT ci_issuer_wishes_issuer_fkey FOREIGN KEY (issuer) REFERENCES ci_issuers(issuer),
    CONSTRAINT ci_issuer_wishes_pkey PRIMARY KEY (business_unit_id, issuer)
);

CREATE TABLE ci_issuers (
    issuer text NOT NULL,
    jwks jsonb,
    fetched_at timestamp with time zone,
    CONSTRAINT ci_issuers_pkey PRIMARY KEY (issuer)
);

CREATE TABLE ci_trust_rule_workspaces (
    business_unit_id uuid NOT NULL,
    trust_rule_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    CONSTRAINT ci_trust_rule_workspaces_pkey PRIMARY KEY (trust_rule_id, workspace_id),
    CONSTRAINT ci_trust_rule_workspaces_rule FOREIGN KEY (business_unit_id, trust_rule_id) REFERENCES ci_trust_rules(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT ci_trust_rule_workspaces_workspace FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces(business_unit_id, id) ON DELETE CASCADE
);

CREATE TABLE ci_trust_rules (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    name text NOT NULL,
    issuer text NOT NULL,
    audience text NOT NULL,
    subject text NOT NULL,
    claims jsonb DEFAULT '{}'::jsonb NOT NULL,
    capability text NOT NULL,
    confined boolean NOT NULL,
    key_minutes integer NOT NULL,
    created_by uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT ci_trust_rules_audience_check CHECK (((length(audience) >= 1) AND (length(audience) <= 255))),
    CONSTRAINT ci_trust_rules_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT ci_trust_rules_capability_check CHECK ((capability = ANY (ARRAY['read'::text, 'plan'::text, 'apply'::text, 'admin'::text]))),
    CONSTRAINT ci_trust_rules_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id) ON DELETE SET NULL,
    CONSTRAINT ci_trust_rules_issuer_check CHECK (((issuer ~~ 'https://%'::text) OR (issuer ~~ 'http://%'::text))),
    CONSTRAINT ci_trust_rules_key_minutes_check CHECK (((key_minutes >= 5) AND (key_minutes <= 120))),
    CONSTRAINT ci_trust_rules_name UNIQUE (business_unit_id, name),
    CONSTRAINT ci_trust_rules_name_check CHECK (((length(name) >= 1) AND (length(name) <= 255))),
    CONSTRAINT ci_trust_rules_pkey PRIMARY KEY (id),
    CONSTRAINT ci_trust_rules_subject_check CHECK (((length(subject) >= 1) AND (length(subject) <= 500))),
    CONSTRAINT ci_trust_rules_unit UNIQUE (business_unit_id, id)
);

CREATE TABLE clusters (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    name text NOT NULL,
    description text,
    server_url text NOT NULL,
    default_namespace text NOT NULL,
    aws_account_id text,
    allow_insecure_tls boolean NOT NULL,
    kubeconfig_sealed text NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    created_by uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT clusters_aws_account FOREIGN KEY (business_unit_id, aws_account_id) REFERENCES aws_accounts(business_unit_id, account_id),
    CONSTRAINT clusters_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT clusters_name UNIQUE (business_unit_id, name),
    CONSTRAINT clusters_name_check CHECK (((length(name) >= 1) AND (length(name) <= 120))),
    CONSTRAINT clusters_pkey PRIMARY KEY (id),
    CONSTRAINT clusters_unit UNIQUE (business_unit_id, id)
);

CREATE TABLE executors (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    task_id uuid NOT NULL,
    lease_token bigint NOT NULL,
    kind text NOT NULL,
    subject_id uuid NOT NULL,
    launcher text NOT NULL,
    handle text,
    status text DEFAULT 'launching'::text NOT NULL,
    token_hash bytea,
    stop_reason text,
    launched_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    traded_at timestamp with time zone,
    last_seen_at timestamp with time zone,
    stop_requested_at timestamp with time zone,
    stopped_at timestamp with time zone,
    run_password_hash bytea,
    CONSTRAINT executors_attempt UNIQUE (task_id, lease_token),
    CONSTRAINT executors_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT executors_launcher_check CHECK ((launcher = ANY (ARRAY['local'::text, 'ecs'::text]))),
    CONSTRAINT executors_pkey PRIMARY KEY (id),
    CONSTRAINT executors_status_check CHECK ((status = ANY (ARRAY['launching'::text, 'live'::text, 'stopping'::text, 'stopped'::text]))),
    CONSTRAINT executors_unit UNIQUE (business_unit_id, id)
);

CREATE TABLE finished_tasks (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    class text NOT NULL,
    kind text NOT NULL,
    subject_id uuid NOT NULL,
    payload jsonb NOT NULL,
    priority integer NOT NULL,
    outcome text NOT NULL,
    attempts integer NOT NULL,
    attempts_max integer NOT NULL,
    lease_token bigint NOT NULL,
    dedupe_key text NOT NULL,
    traceparent text,
    requested_by uuid,
    last_error text,
    replay_of uuid,
    result jsonb,
    created_at timestamp with time zone NOT NULL,
    claimed_at timestamp with time zone,
    finished_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT finished_tasks_outcome_check CHECK ((outcome = ANY (ARRAY['done'::text, 'dead'::text, 'cancelled'::text, 'superseded'::text]))),
    CONSTRAINT finished_tasks_pkey PRIMARY KEY (id)
);

CREATE TABLE gcp_projects (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    project_id text NOT NULL,
    client_email text NOT NULL,
    name text NOT NULL,
    description text,
    default_region text NOT NULL,
    state_bucket text,
    state_prefix text,
    service_account_sealed text,
    version integer DEFAULT 1 NOT NULL,
    created_by uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    workload_identity_provider text,
    CONSTRAINT gcp_projects_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT gcp_projects_name_check CHECK (((length(name) >= 1) AND (length(name) <= 120))),
    CONSTRAINT gcp_projects_pkey PRIMARY KEY (id),
    CONSTRAINT gcp_projects_project UNIQUE (business_unit_id, project_id),
    CONSTRAINT gcp_projects_trust CHECK ((num_nonnulls(service_account_sealed, workload_identity_provider) = 1)),
    CONSTRAINT gcp_projects_unit UNIQUE (business_unit_id, id)
);

CREATE TABLE git_credentials (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    transport text NOT NULL,
    host text NOT NULL,
    path_prefix text NOT NULL,
    username text,
    public_key text,
    host_keys jsonb NOT NULL,
    app_id text,
    installation_id bigint,
    api_url text,
    secret_sealed text NOT NULL,
    masked_tail text,
    test_repo_url text,
    last_used_at timestamp with time zone,
    version integer DEFAULT 1 NOT NULL,
    created_by uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT git_credentials_app CHECK (((kind = 'github_app'::text) = ((app_id IS NOT NULL) AND (installation_id IS NOT NULL) AND (api_url IS NOT NULL)))),
    CONSTRAINT git_credentials_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT git_credentials_business_unit_id_id_key UNIQUE (business_unit_id, id),
    CONSTRAINT git_credentials_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id) ON DELETE SET NULL,
    CONSTRAINT git_credentials_host_check CHECK ((host <> ''::text)),
    CONSTRAINT git_credentials_kind_check CHECK ((kind = ANY (ARRAY['token'::text, 'ssh_key'::text, 'github_app'::text]))),
    CONSTRAINT git_credentials_name UNIQUE (business_unit_id, name),
    CONSTRAINT git_credentials_name_check CHECK (((length(name) >= 1) AND (length(name) <= 255))),
    CONSTRAINT git_credentials_pkey PRIMARY KEY (id),
    CONSTRAINT git_credentials_place UNIQUE (business_unit_id, transport, host, path_prefix),
    CONSTRAINT git_credentials_ssh CHECK (((kind <> 'ssh_key'::text) OR ((public_key IS NOT NULL) AND (jsonb_array_length(host_keys) > 0)))),
    CONSTRAINT git_credentials_token CHECK (((kind = 'token'::text) = (username IS NOT NULL))),
    CONSTRAINT git_credentials_transport CHECK (((kind = 'ssh_key'::text) = (transport = 'ssh'::text))),
    CONSTRAINT git_credentials_transport_check CHECK ((transport = ANY (ARRAY['https'::text, 'ssh'::text])))
);

CREATE TABLE idempotency_keys (
    principal text NOT NULL,
    key text NOT NULL,
    request_hash bytea NOT NULL,
    status integer,
    response jsonb,
    location text,
    expires_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT idempotency_keys_key_check CHECK (((length(key) >= 1) AND (length(key) <= 255))),
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (principal, key)
);

CREATE TABLE installation (
    id smallint DEFAULT 1 NOT NULL,
    epoch integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT installation_id_check CHECK ((id = 1)),
    CONSTRAINT installation_pkey PRIMARY KEY (id)
);

CREATE TABLE invites (
    user_id uuid NOT NULL,
    token_hash bytea NOT NULL,
    created_by uuid,
    expires_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT invites_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id) ON DELETE SET NULL,
    CONSTRAINT invites_pkey PRIMARY KEY (user_id),
    CONSTRAINT invites_token UNIQUE (token_hash),
    CONSTRAINT invites_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);

CREATE TABLE issuer_keys (
    id uuid NOT NULL,
    modulus text NOT NULL,
    exponent text NOT NULL,
    private_sealed text,
    kms_key text,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    signs_since timestamp with time zone,
    retired_at timestamp with time zone,
    published_until timestamp with time zone,
    CONSTRAINT issuer_keys_kms_key UNIQUE (kms_key),
    CONSTRAINT issuer_keys_pkey PRIMARY KEY (id),
    CONSTRAINT issuer_keys_private CHECK (
CASE
    WHEN (retired_at IS NULL) THEN (num_nonnulls(private_sealed, kms_key) = 1)
    ELSE (private_sealed IS NULL)
END),
    CONSTRAINT issuer_keys_retired CHECK ((((retired_at IS NULL) = (published_until IS NULL)) AND ((retired_at IS NULL) OR (signs_since IS NOT NULL))))
);

CREATE TABLE jwt_secrets (
    id uuid NOT NULL,
    sealed text NOT NULL,
    created_by uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    retired_at timestamp with time zone,
    accepted_until timestamp with time zone,
    CONSTRAINT jwt_secrets_pkey PRIMARY KEY (id),
    CONSTRAINT jwt_secrets_retired CHECK (((retired_at IS NULL) = (accepted_until IS NULL)))
);

CREATE TABLE launch_budget (
    id smallint DEFAULT 1 NOT NULL,
    running integer DEFAULT 0 NOT NULL,
    tokens double precision DEFAULT 0 NOT NULL,
    refilled_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    CONSTRAINT launch_budget_id_check CHECK ((id = 1)),
    CONSTRAINT launch_budget_pkey PRIMARY KEY (id),
    CONSTRAINT launch_budget_running_check CHECK ((running >= 0))
);

CREATE TABLE log_chunks (
    business_unit_id uuid NOT NULL,
    run_id uuid NOT NULL,
    "position" smallint NOT NULL,
    attempt integer NOT NULL,
    offset_bytes bigint NOT NULL,
    bytes bytea NOT NULL,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT log_chunks_business_unit_id_run_id_fkey FOREIGN KEY (business_unit_id, run_id) REFERENCES runs(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT log_chunks_offset_bytes_check CHECK ((offset_bytes >= 0)),
    CONSTRAINT log_chunks_pkey PRIMARY KEY (run_id, "position", attempt, offset_bytes)
);

CREATE TABLE login_attempts (
    key text NOT NULL,
    window_at timestamp with time zone NOT NULL,
    attempts integer NOT NULL,
    CONSTRAINT login_attempts_pkey PRIMARY KEY (key)
);

CREATE TABLE memberships (
    user_id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    role text NOT NULL,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    source text DEFAULT 'manual'::text NOT NULL,
    CONSTRAINT memberships_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT memberships_pkey PRIMARY KEY (user_id, business_unit_id),
    CONSTRAINT memberships_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text]))),
    CONSTRAINT memberships_source_check CHECK ((source = ANY (ARRAY['manual'::text, 'oidc'::text]))),
    CONSTRAINT memberships_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);

CREATE TABLE oidc_sign_ins (
    state_hash bytea NOT NULL,
    user_id uuid,
    code_hash bytea,
    cli_challenge bytea,
    generation integer,
    code_expires_at timestamp with time zone,
    traded_at timestamp with time zone,
    session_id uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT oidc_sign_ins_cli_challenge_check CHECK ((length(cli_challenge) = 32)),
    CONSTRAINT oidc_sign_ins_code UNIQUE (code_hash),
    CONSTRAINT oidc_sign_ins_code_hash_check CHECK ((length(code_hash) = 32)),
    CONSTRAINT oidc_sign_ins_pkey PRIMARY KEY (state_hash),
    CONSTRAINT oidc_sign_ins_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id) ON DELETE SET NULL,
    CONSTRAINT oidc_sign_ins_state_hash_check CHECK ((length(state_hash) = 32)),
    CONSTRAINT oidc_sign_ins_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
    CONSTRAINT oidc_sign_ins_whole CHECK ((((user_id IS NULL) = (code_hash IS NULL)) AND ((user_id IS NULL) = (code_expires_at IS NULL)) AND ((user_id IS NULL) = (generation IS NULL)) AND ((code_hash IS NOT NULL) OR ((cli_challenge IS NULL) AND (traded_at IS NULL)))))
);

CREATE TABLE platform_config (
    key text NOT NULL,
    id uuid NOT NULL,
    value jsonb,
    sealed text,
    version integer DEFAULT 0 NOT NULL,
    updated_by uuid,
    updated_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT platform_config_id UNIQUE (id),
    CONSTRAINT platform_config_key_check CHECK (((length(key) >= 1) AND (length(key) <= 100))),
    CONSTRAINT platform_config_one_value CHECK (((value IS NULL) OR (sealed IS NULL))),
    CONSTRAINT platform_config_pkey PRIMARY KEY (key)
);

CREATE TABLE platform_config_history (
    id uuid NOT NULL,
    key text NOT NULL,
    version integer NOT NULL,
    change text NOT NULL,
    is_secret boolean NOT NULL,
    old_value jsonb,
    new_value jsonb,
    changed_by uuid,
    changed_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT platform_config_history_change_check CHECK ((change = ANY (ARRAY['set'::text, 'replaced'::text, 'deleted'::text]))),
    CONSTRAINT platform_config_history_key_fkey FOREIGN KEY (key) REFERENCES platform_config(key),
    CONSTRAINT platform_config_history_no_secret CHECK (((NOT is_secret) OR ((old_value IS NULL) AND (new_value IS NULL)))),
    CONSTRAINT platform_config_history_pkey PRIMARY KEY (id)
);

CREATE TABLE quarantined_states (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    reason text NOT NULL,
    serial bigint,
    lineage text,
    lock_id text,
    md5 bytea NOT NULL,
    sha256 bytea NOT NULL,
    size_bytes bigint NOT NULL,
    key text NOT NULL,
    run_id uuid,
    created_by uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    resolved_at timestamp with time zone,
    resolved_by uuid,
    resolution text,
    store_id uuid,
    expired_at timestamp with time zone,
    CONSTRAINT quarantined_states_business_unit_id_workspace_id_fkey FOREIGN KEY (business_unit_id, workspace_id) REFERENCES tfstates(business_unit_id, workspace_id) ON DELETE CASCADE,
    CONSTRAINT quarantined_states_once UNIQUE (workspace_id, sha256, reason),
    CONSTRAINT quarantined_states_pkey PRIMARY KEY (id),
    CONSTRAINT quarantined_states_resolution_check CHECK ((resolution = ANY (ARRAY['promoted'::text, 'discarded'::text]))),
    CONSTRAINT quarantined_states_store FOREIGN KEY (business_unit_id, store_id) REFERENCES state_stores(business_unit_id, id)
);

CREATE TABLE queue_units (
    business_unit_id uuid NOT NULL,
    class text NOT NULL,
    running_max integer,
    running integer DEFAULT 0 NOT NULL,
    last_served_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    CONSTRAINT queue_units_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT queue_units_class_check CHECK ((class = ANY (ARRAY['executor'::text, 'short'::text]))),
    CONSTRAINT queue_units_pkey PRIMARY KEY (business_unit_id, class),
    CONSTRAINT queue_units_running_check CHECK ((running >= 0)),
    CONSTRAINT queue_units_running_max_check CHECK ((running_max >= 0))
);

CREATE TABLE rekey_columns (
    rekey_id uuid NOT NULL,
    table_name text NOT NULL,
    column_name text NOT NULL,
    "position" uuid,
    passed boolean DEFAULT false NOT NULL,
    resealed bigint DEFAULT 0 NOT NULL,
    remaining bigint,
    unreadable bigint DEFAULT 0 NOT NULL,
    unreadable_rows uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    CONSTRAINT rekey_columns_pkey PRIMARY KEY (rekey_id, table_name, column_name),
    CONSTRAINT rekey_columns_rekey_id_fkey FOREIGN KEY (rekey_id) REFERENCES rekeys(id),
    CONSTRAINT rekey_columns_resealed_check CHECK ((resealed >= 0)),
    CONSTRAINT rekey_columns_unreadable_check CHECK ((unreadable >= 0))
);

CREATE TABLE rekeys (
    id uuid NOT NULL,
    key_id text NOT NULL,
    status text DEFAULT 'running'::text NOT NULL,
    requested_by uuid,
    note text,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    resealed_at timestamp with time zone,
    finished_at timestamp with time zone,
    CONSTRAINT rekeys_finished CHECK (((status = 'running'::text) = (finished_at IS NULL))),
    CONSTRAINT rekeys_pkey PRIMARY KEY (id),
    CONSTRAINT rekeys_status_check CHECK ((status = ANY (ARRAY['running'::text, 'done'::text, 'failed'::text, 'superseded'::text])))
);

CREATE TABLE resources (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    address text NOT NULL,
    mode text NOT NULL,
    type text NOT NULL,
    name text NOT NULL,
    module text,
    provider text NOT NULL,
    index_key text,
    resource_id text,
    arn text,
    names jsonb NOT NULL,
    haystack text NOT NULL,
    CONSTRAINT resources_business_unit_id_workspace_id_fkey FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT resources_mode_check CHECK ((mode = ANY (ARRAY['managed'::text, 'data'::text]))),
    CONSTRAINT resources_once UNIQUE (workspace_id, address),
    CONSTRAINT resources_pkey PRIMARY KEY (id),
    CONSTRAINT resources_unit UNIQUE (business_unit_id, id)
);

CREATE TABLE run_steps (
    business_unit_id uuid NOT NULL,
    run_id uuid NOT NULL,
    "position" smallint NOT NULL,
    phase text NOT NULL,
    name text NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    summary jsonb,
    log_bytes bigint DEFAULT 0 NOT NULL,
    log_truncated boolean DEFAULT false NOT NULL,
    log_blob_id uuid,
    started_at timestamp with time zone,
    completed_at timestamp with time zone,
    CONSTRAINT run_steps_business_unit_id_run_id_fkey FOREIGN KEY (business_unit_id, run_id) REFERENCES runs(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT run_steps_phase_check CHECK ((phase = ANY (ARRAY['plan'::text, 'approval'::text, 'apply'::text]))),
    CONSTRAINT run_steps_pkey PRIMARY KEY (run_id, "position"),
    CONSTRAINT run_steps_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'running'::text, 'succeeded'::text, 'failed'::text, 'skipped'::text])))
);

CREATE TABLE runs (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    command text NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    status_reason text,
    error text,
    waiting boolean DEFAULT false NOT NULL,
    branch text NOT NULL,
    message text,
    variables_sealed text,
    credentials jsonb DEFAULT '[]'::jsonb NOT NULL,
    auto_approve_if_no_changes boolean DEFAULT false NOT NULL,
    auto_approve_skip_apply boolean DEFAULT false NOT NULL,
    allow_destroy boolean DEFAULT false NOT NULL,
    triggered_by uuid,
    trigger_source text DEFAULT 'user'::text NOT NULL,
    commit_sha text,
    tool text,
    tool_version text,
    lock_file_sha256 bytea,
    base_state_version_id uuid,
    base_lineage text,
    base_serial bigint,
    plan_sha256 bytea,
    plan_json_sha256 bytea,
    gates_sha256 bytea,
    plan_summary jsonb,
    has_changes boolean,
    planned_at timestamp with time zone,
    plan_expires_at timestamp with time zone,
    approved_by uuid,
    approved_at timestamp with time zone,
    approval_comment text,
    approved_digest bytea,
    apply_begun_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    cancel_requested_by uuid,
    promoted_from uuid,
    traceparent text,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    started_at timestamp with time zone,
    completed_at timestamp with time zone,
    pinned_variables jsonb,
    pinned_variables_sealed text,
    variables_removed_at timestamp with time zone,
    CONSTRAINT runs_command_check CHECK ((command = ANY (ARRAY['plan'::text, 'apply'::text, 'destroy'::text]))),
    CONSTRAINT runs_pkey PRIMARY KEY (id),
    CONSTRAINT runs_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'running'::text, 'planning'::text, 'planned'::text, 'awaiting_approval'::text, 'applying'::text, 'applied'::text, 'failed'::text, 'cancelled'::text]))),
    CONSTRAINT runs_unit UNIQUE (business_unit_id, id),
    CONSTRAINT runs_waiting CHECK (((NOT waiting) OR (status = 'pending'::text))),
    CONSTRAINT runs_workspace FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces(business_unit_id, id) ON DELETE CASCADE
);

CREATE TABLE schema_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT schema_migrations_pkey PRIMARY KEY (version)
);

CREATE TABLE sessions (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    refresh_token_hash bytea NOT NULL,
    refresh_sequence integer DEFAULT 1 NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    revoked_reason text,
    by_password boolean DEFAULT true NOT NULL,
    address inet,
    user_agent text,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    refreshed_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (id),
    CONSTRAINT sessions_user_agent_check CHECK ((length(user_agent) <= 255)),
    CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);

CREATE TABLE state_consumers (
    business_unit_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    consumer_id uuid NOT NULL,
    created_by uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT state_consumers_business_unit_id_consumer_id_fkey FOREIGN KEY (business_unit_id, consumer_id) REFERENCES workspaces(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT state_consumers_business_unit_id_workspace_id_fkey FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT state_consumers_others CHECK ((workspace_id <> consumer_id)),
    CONSTRAINT state_consumers_pkey PRIMARY KEY (workspace_id, consumer_id)
);

CREATE TABLE state_indexes (
    workspace_id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    version_id uuid,
    failed_version_id uuid,
    truncated boolean DEFAULT false NOT NULL,
    unreadable text,
    indexed_at timestamp with time zone,
    CONSTRAINT state_indexes_business_unit_id_workspace_id_fkey FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT state_indexes_pkey PRIMARY KEY (workspace_id, business_unit_id)
);

CREATE TABLE state_lock_waiters (
    workspace_id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    lock_id text NOT NULL,
    lock_info text NOT NULL,
    tries integer DEFAULT 1 NOT NULL,
    first_tried_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    last_tried_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT state_lock_waiters_business_unit_id_workspace_id_fkey FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT state_lock_waiters_pkey PRIMARY KEY (workspace_id, lock_id)
);

CREATE TABLE state_stores (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    aws_account_id uuid,
    azure_subscription_id uuid,
    gcp_project_id uuid,
    bucket text NOT NULL,
    region text,
    storage_account text,
    prefix text,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT state_stores_account CHECK ((num_nonnulls(aws_account_id, azure_subscription_id, gcp_project_id) = 1)),
    CONSTRAINT state_stores_aws CHECK (((aws_account_id IS NULL) = (region IS NULL))),
    CONSTRAINT state_stores_aws_account FOREIGN KEY (business_unit_id, aws_account_id) REFERENCES aws_accounts(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT state_stores_azure CHECK (((azure_subscription_id IS NULL) = (storage_account IS NULL))),
    CONSTRAINT state_stores_azure_subscription FOREIGN KEY (business_unit_id, azure_subscription_id) REFERENCES azure_subscriptions(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT state_stores_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT state_stores_gcp CHECK (((prefix IS NULL) OR (gcp_project_id IS NOT NULL))),
    CONSTRAINT state_stores_gcp_project FOREIGN KEY (business_unit_id, gcp_project_id) REFERENCES gcp_projects(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT state_stores_pkey PRIMARY KEY (id),
    CONSTRAINT state_stores_place UNIQUE NULLS NOT DISTINCT (business_unit_id, aws_account_id, azure_subscription_id, gcp_project_id, bucket, region, storage_account, prefix),
    CONSTRAINT state_stores_unit UNIQUE (business_unit_id, id)
);

CREATE TABLE state_uploads (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    generation bigint NOT NULL,
    lock_id text NOT NULL,
    run_id uuid,
    created_by uuid,
    key text NOT NULL,
    serial bigint NOT NULL,
    lineage text NOT NULL,
    md5 bytea NOT NULL,
    sha256 bytea NOT NULL,
    size_bytes bigint NOT NULL,
    terraform_version text,
    opaque boolean DEFAULT false NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    url_expires_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    store_id uuid,
    CONSTRAINT state_uploads_business_unit_id_workspace_id_fkey FOREIGN KEY (business_unit_id, workspace_id) REFERENCES tfstates(business_unit_id, workspace_id) ON DELETE CASCADE,
    CONSTRAINT state_uploads_pkey PRIMARY KEY (id),
    CONSTRAINT state_uploads_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'committed'::text, 'quarantined'::text, 'abandoned'::text]))),
    CONSTRAINT state_uploads_store FOREIGN KEY (business_unit_id, store_id) REFERENCES state_stores(business_unit_id, id) ON DELETE SET NULL (store_id)
);

CREATE TABLE state_versions (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    serial bigint NOT NULL,
    lineage text NOT NULL,
    generation bigint NOT NULL,
    lock_id text,
    md5 bytea NOT NULL,
    sha256 bytea NOT NULL,
    size_bytes bigint NOT NULL,
    key text NOT NULL,
    terraform_version text,
    opaque boolean DEFAULT false NOT NULL,
    run_id uuid,
    created_by uuid,
    rolled_back_from uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    resource_count bigint,
    emptied boolean DEFAULT false NOT NULL,
    contradiction text,
    store_id uuid,
    expired_at timestamp with time zone,
    CONSTRAINT state_versions_business_unit_id_workspace_id_fkey FOREIGN KEY (business_unit_id, workspace_id) REFERENCES tfstates(business_unit_id, workspace_id) ON DELETE CASCADE,
    CONSTRAINT state_versions_md5_check CHECK ((length(md5) = 16)),
    CONSTRAINT state_versions_pkey PRIMARY KEY (id),
    CONSTRAINT state_versions_sha256_check CHECK ((length(sha256) = 32)),
    CONSTRAINT state_versions_store FOREIGN KEY (business_unit_id, store_id) REFERENCES state_stores(business_unit_id, id),
    CONSTRAINT state_versions_unit UNIQUE (business_unit_id, id)
);

CREATE TABLE sweep_ticks (
    name text NOT NULL,
    last_ok_at timestamp with time zone NOT NULL,
    grace_until timestamp with time zone,
    CONSTRAINT sweep_ticks_pkey PRIMARY KEY (name)
);

CREATE TABLE tasks (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    class text NOT NULL,
    kind text NOT NULL,
    subject_id uuid NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    priority integer DEFAULT 100 NOT NULL,
    run_after timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    status text DEFAULT 'queued'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    attempts_max integer NOT NULL,
    lease_token bigint DEFAULT 0 NOT NULL,
    lease_expires_at timestamp with time zone,
    lease_phase text,
    attempt_ends_at timestamp with time zone,
    claimed_by text,
    claimed_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    dedupe_key text NOT NULL,
    traceparent text,
    requested_by uuid,
    last_error text,
    replay_of uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT tasks_attempts_max_check CHECK ((attempts_max > 0)),
    CONSTRAINT tasks_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT tasks_class_check CHECK ((class = ANY (ARRAY['executor'::text, 'short'::text]))),
    CONSTRAINT tasks_lease_phase_check CHECK ((lease_phase = ANY (ARRAY['launching'::text, 'live'::text, 'unresponsive'::text]))),
    CONSTRAINT tasks_pkey PRIMARY KEY (id),
    CONSTRAINT tasks_running_has_lease CHECK (((status = 'running'::text) = (lease_expires_at IS NOT NULL))),
    CONSTRAINT tasks_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text])))
);

CREATE TABLE tfstates (
    workspace_id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    head_version_id uuid,
    head_serial bigint,
    head_lineage text,
    head_key text,
    head_size_bytes bigint,
    head_md5 bytea,
    head_sha256 bytea,
    generation bigint DEFAULT 0 NOT NULL,
    lock_id text,
    lock_info text,
    lock_run_id uuid,
    lock_executor_id uuid,
    lock_user_id uuid,
    locked_at timestamp with time zone,
    last_lock_id text,
    last_lock_generation bigint,
    accept_next_lineage boolean DEFAULT false NOT NULL,
    head_resource_count bigint,
    head_store_id uuid,
    retention_checked_at timestamp with time zone,
    CONSTRAINT tfstates_head CHECK ((num_nonnulls(head_version_id, head_serial, head_lineage, head_key, head_size_bytes, head_md5, head_sha256) = ANY (ARRAY[0, 7]))),
    CONSTRAINT tfstates_lock CHECK (((lock_id IS NULL) = (lock_info IS NULL))),
    CONSTRAINT tfstates_pkey PRIMARY KEY (workspace_id, business_unit_id),
    CONSTRAINT tfstates_workspace FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces(business_unit_id, id) ON DELETE CASCADE
);

CREATE TABLE tickets (
    ticket_hash bytea NOT NULL,
    business_unit_id uuid NOT NULL,
    executor_id uuid NOT NULL,
    nonce_hash bytea,
    traded_at timestamp with time zone,
    voided_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT tickets_business_unit_id_executor_id_fkey FOREIGN KEY (business_unit_id, executor_id) REFERENCES executors(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT tickets_executor UNIQUE (executor_id),
    CONSTRAINT tickets_pkey PRIMARY KEY (ticket_hash),
    CONSTRAINT tickets_ticket_hash_check CHECK ((length(ticket_hash) = 32))
);

CREATE TABLE touched_resources (
    business_unit_id uuid NOT NULL,
    run_id uuid NOT NULL,
    address text NOT NULL,
    action text NOT NULL,
    resource_id text,
    reported_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT touched_resources_business_unit_id_run_id_fkey FOREIGN KEY (business_unit_id, run_id) REFERENCES runs(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT touched_resources_pkey PRIMARY KEY (run_id, address)
);

CREATE TABLE unit_config (
    business_unit_id uuid NOT NULL,
    key text NOT NULL,
    id uuid NOT NULL,
    value jsonb,
    sealed text,
    version integer DEFAULT 0 NOT NULL,
    updated_by uuid,
    updated_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT unit_config_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT unit_config_id UNIQUE (business_unit_id, id),
    CONSTRAINT unit_config_key_check CHECK (((length(key) >= 1) AND (length(key) <= 100))),
    CONSTRAINT unit_config_one_value CHECK (((value IS NULL) OR (sealed IS NULL))),
    CONSTRAINT unit_config_pkey PRIMARY KEY (business_unit_id, key)
);

CREATE TABLE unit_config_history (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    key text NOT NULL,
    version integer NOT NULL,
    change text NOT NULL,
    is_secret boolean NOT NULL,
    old_value jsonb,
    new_value jsonb,
    changed_by uuid,
    changed_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT unit_config_history_change_check CHECK ((change = ANY (ARRAY['set'::text, 'replaced'::text, 'deleted'::text]))),
    CONSTRAINT unit_config_history_key FOREIGN KEY (business_unit_id, key) REFERENCES unit_config(business_unit_id, key),
    CONSTRAINT unit_config_history_no_secret CHECK (((NOT is_secret) OR ((old_value IS NULL) AND (new_value IS NULL)))),
    CONSTRAINT unit_config_history_pkey PRIMARY KEY (id),
    CONSTRAINT unit_config_history_unit UNIQUE (business_unit_id, id)
);

CREATE TABLE user_presence (
    user_id uuid NOT NULL,
    viewed_unit_id uuid,
    last_seen_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT user_presence_pkey PRIMARY KEY (user_id),
    CONSTRAINT user_presence_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
    CONSTRAINT user_presence_viewed_unit_id_fkey FOREIGN KEY (viewed_unit_id) REFERENCES business_units(id)
);

CREATE TABLE users (
    id uuid NOT NULL,
    email text NOT NULL,
    display_name text,
    password_hash text,
    must_change_password boolean DEFAULT false NOT NULL,
    password_set_by uuid,
    is_superadmin boolean DEFAULT false NOT NULL,
    disabled_at timestamp with time zone,
    token_generation integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    oidc_issuer text,
    oidc_subject text,
    superadmin_by_group boolean DEFAULT false NOT NULL,
    has_password boolean GENERATED ALWAYS AS ((password_hash IS NOT NULL)) STORED NOT NULL,
    CONSTRAINT users_email UNIQUE (email),
    CONSTRAINT users_email_check CHECK (((email = lower(email)) AND ((length(email) >= 3) AND (length(email) <= 255)))),
    CONSTRAINT users_oidc UNIQUE (oidc_issuer, oidc_subject),
    CONSTRAINT users_oidc_issuer_check CHECK (((length(oidc_issuer) >= 1) AND (length(oidc_issuer) <= 2048))),
    CONSTRAINT users_oidc_subject_check CHECK (((length(oidc_subject) >= 1) AND (length(oidc_subject) <= 255))),
    CONSTRAINT users_oidc_whole CHECK (((oidc_issuer IS NULL) = (oidc_subject IS NULL))),
    CONSTRAINT users_password_set_by_fkey FOREIGN KEY (password_set_by) REFERENCES users(id) ON DELETE SET NULL,
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_superadmin_by_group CHECK ((is_superadmin OR (NOT superadmin_by_group)))
);

CREATE TABLE variable_set_workspaces (
    business_unit_id uuid NOT NULL,
    variable_set_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT variable_set_workspaces_business_unit_id_variable_set_id_fkey FOREIGN KEY (business_unit_id, variable_set_id) REFERENCES variable_sets(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT variable_set_workspaces_business_unit_id_workspace_id_fkey FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT variable_set_workspaces_pkey PRIMARY KEY (variable_set_id, workspace_id)
);

CREATE TABLE variable_sets (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    name text NOT NULL,
    description text,
    priority integer DEFAULT 0 NOT NULL,
    all_workspaces boolean DEFAULT false NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT variable_sets_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT variable_sets_name UNIQUE (business_unit_id, name),
    CONSTRAINT variable_sets_name_check CHECK (((length(name) >= 1) AND (length(name) <= 255))),
    CONSTRAINT variable_sets_pkey PRIMARY KEY (id),
    CONSTRAINT variable_sets_priority_check CHECK (((priority >= 0) AND (priority <= 1000))),
    CONSTRAINT variable_sets_unit UNIQUE (business_unit_id, id)
);

CREATE TABLE variables (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    variable_set_id uuid,
    workspace_id uuid,
    owner_id uuid GENERATED ALWAYS AS (COALESCE(workspace_id, variable_set_id, business_unit_id)) STORED NOT NULL,
    key text NOT NULL,
    value_sealed text NOT NULL,
    value_bytes integer NOT NULL,
    is_secret boolean NOT NULL,
    is_hcl boolean NOT NULL,
    description text,
    version integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    CONSTRAINT variables_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT variables_key UNIQUE (owner_id, key),
    CONSTRAINT variables_key_check CHECK ((key ~ '^[A-Za-z_][A-Za-z0-9_]{0,254}$'::text)),
    CONSTRAINT variables_one_owner CHECK (((variable_set_id IS NULL) OR (workspace_id IS NULL))),
    CONSTRAINT variables_pkey PRIMARY KEY (id),
    CONSTRAINT variables_set FOREIGN KEY (business_unit_id, variable_set_id) REFERENCES variable_sets(business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT variables_unit UNIQUE (business_unit_id, id),
    CONSTRAINT variables_value_bytes_check CHECK (((value_bytes >= 0) AND (value_bytes <= 65536))),
    CONSTRAINT variables_workspace FOREIGN KEY (business_unit_id, workspace_id) REFERENCES workspaces(business_unit_id, id) ON DELETE CASCADE
);

CREATE TABLE workspaces (
    id uuid NOT NULL,
    business_unit_id uuid NOT NULL,
    name text NOT NULL,
    kind text DEFAULT 'terraform'::text NOT NULL,
    environment text NOT NULL,
    aws_account_id text NOT NULL,
    region text NOT NULL,
    repo_url text NOT NULL,
    repo_ref text DEFAULT 'main'::text NOT NULL,
    tf_working_dir text DEFAULT '.'::text NOT NULL,
    tool text DEFAULT 'terraform'::text NOT NULL,
    tool_version text,
    tags jsonb DEFAULT '{}'::jsonb NOT NULL,
    state_writes text DEFAULT 'runs_only'::text NOT NULL,
    webhook_enabled boolean DEFAULT false NOT NULL,
    state_aws_account_id text,
    azure_subscription_id text,
    gcp_project_id text,
    cluster_id uuid,
    path_status text DEFAULT 'unknown'::text NOT NULL,
    path_checked_at timestamp with time zone,
    drift_status text DEFAULT 'unknown'::text NOT NULL,
    active_run_id uuid,
    blocked_at timestamp with time zone,
    blocked_reason text,
    blocked_run_id uuid,
    version integer DEFAULT 1 NOT NULL,
    created_by uuid,
    created_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT plumbline_now() NOT NULL,
    state_backend text DEFAULT 'automatic'::text NOT NULL,
    locked_at timestamp with time zone,
    locked_by uuid,
    locked_who text,
    locked_reason text,
    CONSTRAINT workspaces_active_run FOREIGN KEY (business_unit_id, active_run_id) REFERENCES runs(business_unit_id, id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT workspaces_azure_subscription FOREIGN KEY (business_unit_id, azure_subscription_id) REFERENCES azure_subscriptions(business_unit_id, subscription_id),
    CONSTRAINT workspaces_blocked CHECK (((blocked_at IS NULL) = (blocked_reason IS NULL))),
    CONSTRAINT workspaces_business_unit_id_fkey FOREIGN KEY (business_unit_id) REFERENCES business_units(id),
    CONSTRAINT workspaces_cluster FOREIGN KEY (business_unit_id, cluster_id) REFERENCES clusters(business_unit_id, id),
    CONSTRAINT workspaces_drift_status_check CHECK ((drift_status = ANY (ARRAY['clean'::text, 'drifted'::text, 'unknown'::text]))),
    CONSTRAINT workspaces_gcp_project FOREIGN KEY (business_unit_id, gcp_project_id) REFERENCES gcp_projects(business_unit_id, project_id),
    CONSTRAINT workspaces_identity UNIQUE (business_unit_id, aws_account_id, region, environment, repo_url, tf_working_dir),
    CONSTRAINT workspaces_kind_check CHECK ((kind = ANY (ARRAY['terraform'::text, 'helm'::text]))),
    CONSTRAINT workspaces_locked CHECK ((num_nonnulls(locked_at, locked_by, locked_who, locked_reason) = ANY (ARRAY[0, 4]))),
    CONSTRAINT workspaces_name_check CHECK ((name ~ '^[a-zA-Z0-9][a-zA-Z0-9_./-]{0,254}$'::text)),
    CONSTRAINT workspaces_path_status_check CHECK ((path_status = ANY (ARRAY['ok'::text, 'orphaned'::text, 'unknown'::text]))),
    CONSTRAINT workspaces_pkey PRIMARY KEY (id),
    CONSTRAINT workspaces_state_aws_account FOREIGN KEY (business_unit_id, state_aws_account_id) REFERENCES aws_accounts(business_unit_id, account_id),
    CONSTRAINT workspaces_state_backend CHECK ((state_backend = ANY (ARRAY['automatic'::text, 'platform'::text, 's3'::text, 'azureblob'::text, 'gcs'::text]))),
    CONSTRAINT workspaces_state_writes_check CHECK ((state_writes = ANY (ARRAY['runs_only'::text, 'runs_and_people'::text]))),
    CONSTRAINT workspaces_tool_check CHECK ((tool = ANY (ARRAY['terraform'::text, 'tofu'::text]))),
    CONSTRAINT workspaces_unit UNIQUE (business_unit_id, id)
);

CREATE INDEX api_key_workspaces_workspace ON public.api_key_workspaces USING btree (workspace_id);

CREATE INDEX api_keys_superseded_by ON public.api_keys USING btree (superseded_by_id) WHERE (superseded_by_id IS NOT NULL);

CREATE INDEX api_keys_trust_rule ON public.api_keys USING btree (trust_rule_id, expires_at) WHERE (trust_rule_id IS NOT NULL);

CREATE INDEX api_keys_user ON public.api_keys USING btree (user_id);

CREATE INDEX artifacts_blob ON public.artifacts USING btree (blob_id);

CREATE INDEX audit_checkpoints_unstored ON public.audit_checkpoints USING btree (sequence) WHERE (stored_at IS NULL);

CREATE INDEX audit_entries_run ON public.audit_entries USING btree (run_id, sequence DESC) WHERE (run_id IS NOT NULL);

CREATE INDEX audit_entries_time ON public.audit_entries USING btree (created_at, sequence, chain_id);

CREATE INDEX audit_entries_workspace ON public.audit_entries USING btree (workspace_id, sequence DESC) WHERE (workspace_id IS NOT NULL);

CREATE INDEX blobs_pending ON public.blobs USING btree (upload_expires_at) WHERE (committed_at IS NULL);

CREATE INDEX ci_trust_rule_workspaces_workspace ON public.ci_trust_rule_workspaces USING btree (workspace_id);

CREATE INDEX ci_trust_rules_issuer ON public.ci_trust_rules USING btree (issuer);

CREATE INDEX clusters_of_aws_account ON public.clusters USING btree (business_unit_id, aws_account_id) WHERE (aws_account_id IS NOT NULL);

CREATE INDEX executors_alive ON public.executors USING btree (status) WHERE (status <> 'stopped'::text);

CREATE UNIQUE INDEX executors_run_password ON public.executors USING btree (run_password_hash);

CREATE INDEX executors_subject ON public.executors USING btree (subject_id);

CREATE UNIQUE INDEX executors_token ON public.executors USING btree (token_hash);

CREATE INDEX finished_tasks_age ON public.finished_tasks USING btree (finished_at);

CREATE INDEX finished_tasks_subject ON public.finished_tasks USING btree (subject_id);

CREATE INDEX finished_tasks_unit ON public.finished_tasks USING btree (business_unit_id, id);

CREATE INDEX finished_tasks_with_login ON public.finished_tasks USING btree (finished_at) WHERE ((payload ->> 'login_sealed'::text) IS NOT NULL);

CREATE INDEX idempotency_keys_expiry ON public.idempotency_keys USING btree (expires_at);

CREATE UNIQUE INDEX issuer_keys_next ON public.issuer_keys USING btree ((1)) WHERE (signs_since IS NULL);

CREATE UNIQUE INDEX issuer_keys_signing ON public.issuer_keys USING btree ((1)) WHERE ((signs_since IS NOT NULL) AND (retired_at IS NULL));

CREATE UNIQUE INDEX jwt_secrets_signing ON public.jwt_secrets USING btree ((1)) WHERE (retired_at IS NULL);

CREATE INDEX memberships_unit ON public.memberships USING btree (business_unit_id);

CREATE INDEX oidc_sign_ins_age ON public.oidc_sign_ins USING btree (created_at);

CREATE INDEX oidc_sign_ins_session ON public.oidc_sign_ins USING btree (session_id);

CREATE INDEX oidc_sign_ins_user ON public.oidc_sign_ins USING btree (user_id);

CREATE INDEX platform_config_history_key ON public.platform_config_history USING btree (key, id DESC);

CREATE INDEX quarantined_states_expired ON public.quarantined_states USING btree (id) WHERE (expired_at IS NOT NULL);

CREATE INDEX quarantined_states_of_workspace ON public.quarantined_states USING btree (workspace_id, id DESC);

CREATE INDEX quarantined_states_store ON public.quarantined_states USING btree (store_id) WHERE (store_id IS NOT NULL);

CREATE UNIQUE INDEX rekeys_running ON public.rekeys USING btree (status) WHERE (status = 'running'::text);

CREATE INDEX run_steps_to_compact ON public.run_steps USING btree (run_id) WHERE ((log_bytes > 0) AND (log_blob_id IS NULL));

CREATE INDEX runs_by_status ON public.runs USING btree (business_unit_id, status, id DESC);

CREATE INDEX runs_of_unit ON public.runs USING btree (business_unit_id, id DESC);

CREATE INDEX runs_of_workspace ON public.runs USING btree (workspace_id, id DESC);

CREATE INDEX runs_unapproved ON public.runs USING btree (plan_expires_at) WHERE (status = 'awaiting_approval'::text);

CREATE INDEX runs_waiting_for_workspace ON public.runs USING btree (workspace_id, id) WHERE waiting;

CREATE INDEX runs_with_values ON public.runs USING btree (completed_at) WHERE ((completed_at IS NOT NULL) AND ((variables_sealed IS NOT NULL) OR (pinned_variables_sealed IS NOT NULL)));

CREATE INDEX sessions_user ON public.sessions USING btree (user_id, id);

CREATE INDEX state_consumers_consumer ON public.state_consumers USING btree (business_unit_id, consumer_id);

CREATE INDEX state_stores_of_aws_account ON public.state_stores USING btree (aws_account_id) WHERE (aws_account_id IS NOT NULL);

CREATE INDEX state_stores_of_azure_subscription ON public.state_stores USING btree (azure_subscription_id) WHERE (azure_subscription_id IS NOT NULL);

CREATE INDEX state_stores_of_gcp_project ON public.state_stores USING btree (gcp_project_id) WHERE (gcp_project_id IS NOT NULL);

CREATE INDEX state_uploads_expired ON public.state_uploads USING btree (url_expires_at) WHERE (status = 'pending'::text);

CREATE INDEX state_uploads_pending ON public.state_uploads USING btree (workspace_id) WHERE (status = 'pending'::text);

CREATE INDEX state_uploads_settled ON public.state_uploads USING btree (created_at) WHERE (status <> 'pending'::text);

CREATE INDEX state_uploads_store ON public.state_uploads USING btree (store_id) WHERE (store_id IS NOT NULL);

CREATE INDEX state_versions_expired ON public.state_versions USING btree (id) WHERE (expired_at IS NOT NULL);

CREATE INDEX state_versions_of_workspace ON public.state_versions USING btree (workspace_id, id DESC);

CREATE INDEX state_versions_store ON public.state_versions USING btree (store_id) WHERE (store_id IS NOT NULL);

CREATE UNIQUE INDEX tasks_dedupe ON public.tasks USING btree (business_unit_id, dedupe_key) WHERE (status = 'queued'::text);

CREATE INDEX tasks_due ON public.tasks USING btree (business_unit_id, class, priority, run_after, id) WHERE (status = 'queued'::text);

CREATE INDEX tasks_running ON public.tasks USING btree (class) WHERE (status = 'running'::text);

CREATE INDEX tasks_subject ON public.tasks USING btree (subject_id);

CREATE INDEX tfstates_retention ON public.tfstates USING btree (retention_checked_at NULLS FIRST);

CREATE INDEX unit_config_history_changes ON public.unit_config_history USING btree (business_unit_id, key, id DESC);

CREATE INDEX user_presence_seen ON public.user_presence USING btree (last_seen_at);

CREATE INDEX variable_set_workspaces_of_workspace ON public.variable_set_workspaces USING btree (workspace_id);

CREATE INDEX variables_of_owner ON public.variables USING btree (owner_id, id DESC);

CREATE INDEX workspaces_of_azure_subscription ON public.workspaces USING btree (business_unit_id, azure_subscription_id) WHERE (azure_subscription_id IS NOT NULL);

CREATE INDEX workspaces_of_cluster ON public.workspaces USING btree (business_unit_id, cluster_id) WHERE (cluster_id IS NOT NULL);

CREATE INDEX workspaces_of_gcp_project ON public.workspaces USING btree (business_unit_id, gcp_project_id) WHERE (gcp_project_id IS NOT NULL);

CREATE INDEX workspaces_of_state_aws_account ON public.workspaces USING btree (business_unit_id, state_aws_account_id) WHERE (state_aws_account_id IS NOT NULL);

CREATE TRIGGER audit_checkpoints_no_delete BEFORE DELETE ON public.audit_checkpoints FOR EACH ROW EXECUTE FUNCTION audit_refuse();

CREATE TRIGGER audit_checkpoints_no_truncate BEFORE TRUNCATE ON public.audit_checkpoints FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();

CREATE TRIGGER audit_checkpoints_no_update BEFORE UPDATE OF sequence, body, hash, signature, key_id, public_key, created_at ON public.audit_checkpoints FOR EACH ROW EXECUTE FUNCTION audit_refuse();

CREATE TRIGGER audit_entries_append_only BEFORE DELETE OR UPDATE ON public.audit_entries FOR EACH ROW EXECUTE FUNCTION audit_refuse();

CREATE TRIGGER audit_entries_insert BEFORE INSERT ON public.audit_entries FOR EACH ROW EXECUTE FUNCTION audit_entries_check();

CREATE TRIGGER audit_entries_no_truncate BEFORE TRUNCATE ON public.audit_entries FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
