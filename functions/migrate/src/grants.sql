-- One role per function, each with what its function needs and no more. Run after every migration by whoever owns the
-- schema and may create roles; running it again changes nothing. Roles have no password: the deploy gives them one, or
-- lets them sign in through IAM.

DO $roles$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN
        SELECT * FROM (VALUES
            ('plumbline_api',        '10s'),
            ('plumbline_tfstate',    '10s'),
            ('plumbline_signin',     '10s'),
            ('plumbline_callback',   '10s'),
            ('plumbline_worker',     '30s'),
            ('plumbline_outbound',   '30s'),
            ('plumbline_reconciler', '55s'),
            ('plumbline_migrate',    '0')
        ) AS roles (name, statement_timeout)
    LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted.name) THEN
            -- Roles belong to the cluster: another database's migration may be making the same one.
            BEGIN
                EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT', wanted.name);
                EXECUTE format('ALTER ROLE %I SET statement_timeout = %L', wanted.name, wanted.statement_timeout);
                EXECUTE format('ALTER ROLE %I SET lock_timeout = ''3s''', wanted.name);
                EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = ''15s''', wanted.name);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
END $roles$;

REVOKE ALL ON ALL TABLES IN SCHEMA public
    FROM plumbline_api, plumbline_tfstate, plumbline_signin, plumbline_callback, plumbline_worker, plumbline_outbound,
        plumbline_reconciler;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public
    TO plumbline_api, plumbline_tfstate, plumbline_signin, plumbline_callback, plumbline_worker, plumbline_outbound,
        plumbline_reconciler;

-- Everyone: which installation this is, and the audit log, which only grows: entries are written and heads moved by
-- the database itself.
GRANT SELECT ON installation, sweep_ticks, schema_migrations, business_units
    TO plumbline_api, plumbline_tfstate, plumbline_signin, plumbline_callback, plumbline_worker, plumbline_outbound,
        plumbline_reconciler;
REVOKE EXECUTE ON FUNCTION audit_append(uuid, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION audit_append(uuid, text, text, text)
    TO plumbline_api, plumbline_tfstate, plumbline_signin, plumbline_callback, plumbline_worker, plumbline_outbound,
        plumbline_reconciler;

-- api: people, sessions, settings, runs as people change them. Not what executors report: plans, logs, artifacts.
GRANT SELECT ON users, memberships, invites, user_presence, sessions, login_attempts, idempotency_keys, queue_units, tasks,
    finished_tasks, launch_budget, workspaces, blobs, runs, run_steps, log_chunks, touched_resources, artifacts, executors,
    tickets, tfstates, state_versions, quarantined_states, state_uploads, api_keys, api_key_workspaces, ci_trust_rules,
    ci_trust_rule_workspaces, ci_issuers, audit_entries, audit_heads, audit_checkpoints, git_credentials, variables,
    variable_sets, variable_set_workspaces, rekeys, rekey_columns, resources, state_indexes TO plumbline_api;
GRANT INSERT, UPDATE ON business_units, user_presence, sessions, login_attempts, idempotency_keys, queue_units, workspaces,
    runs, run_steps, tfstates, quarantined_states, api_keys, rekeys TO plumbline_api;
GRANT INSERT, UPDATE, DELETE ON users, memberships, invites TO plumbline_api;
GRANT INSERT ON api_key_workspaces, ci_trust_rule_workspaces TO plumbline_api;
GRANT INSERT, DELETE ON ci_trust_rules TO plumbline_api;
-- That an issuer's keys are wanted; the keys themselves are for outbound to write.
GRANT INSERT (issuer) ON ci_issuers TO plumbline_api;
GRANT SELECT, INSERT, UPDATE (asked_at) ON ci_issuer_wishes TO plumbline_api;
GRANT INSERT, UPDATE, DELETE ON tasks, git_credentials TO plumbline_api;
GRANT INSERT ON finished_tasks, state_versions, blobs, rekey_columns TO plumbline_api;
GRANT UPDATE ON launch_budget, tickets, executors TO plumbline_api;
GRANT DELETE ON workspaces TO plumbline_api;
GRANT SELECT, INSERT, UPDATE ON platform_config, unit_config, jwt_secrets TO plumbline_api;
-- What was done to a setting is never written again.
GRANT SELECT, INSERT ON platform_config_history, unit_config_history TO plumbline_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON aws_accounts, azure_subscriptions, gcp_projects, clusters TO plumbline_api;
-- The public halves, and which key signs. It takes a private half away and reads none.
GRANT SELECT (id, modulus, exponent, kms_key, created_at, signs_since, retired_at, published_until) ON issuer_keys
    TO plumbline_api;
GRANT UPDATE (private_sealed, signs_since, retired_at, published_until) ON issuer_keys TO plumbline_api;
GRANT INSERT, UPDATE, DELETE ON variables, variable_sets TO plumbline_api;
GRANT INSERT, DELETE ON variable_set_workspaces TO plumbline_api;

GRANT SELECT, INSERT, DELETE ON state_consumers TO plumbline_api;
GRANT SELECT ON state_lock_waiters TO plumbline_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON state_lock_waiters TO plumbline_tfstate, plumbline_callback;

-- tfstate: Terraform's own calls. Of people and keys only what a token is checked against.
GRANT SELECT (id, email, display_name, is_superadmin, disabled_at, token_generation, must_change_password) ON users
    TO plumbline_tfstate;
GRANT SELECT (id, sealed, accepted_until) ON jwt_secrets TO plumbline_tfstate;
GRANT SELECT (id, business_unit_id, name, token_hash, capability, confined, user_id, epoch, expires_at, revoked_at,
    last_used_at) ON api_keys TO plumbline_tfstate;
GRANT UPDATE (last_used_at) ON api_keys TO plumbline_tfstate;
GRANT SELECT ON api_key_workspaces, memberships, sessions, workspaces, state_consumers, runs, executors, tasks, tfstates, state_versions, quarantined_states,
    state_uploads, blobs TO plumbline_tfstate;
GRANT INSERT, UPDATE ON tfstates, quarantined_states, state_uploads, blobs TO plumbline_tfstate;
GRANT INSERT ON state_versions TO plumbline_tfstate;
-- Only to lock the row FOR SHARE, which Postgres allows to those who may update any column.
GRANT UPDATE (last_seen_at) ON executors TO plumbline_tfstate;

-- States lie in accounts of units. Whoever reads or writes bodies sees where, and what lets it in there; nothing else of an
-- account. Places are added and never changed.
GRANT SELECT (id, business_unit_id, account_id, state_bucket, state_bucket_region, keys_sealed, apply_role_arn, external_id,
    oidc_audience, default_region, version) ON aws_accounts TO plumbline_tfstate, plumbline_worker, plumbline_reconciler;
GRANT SELECT (id, business_unit_id, subscription_id, tenant_id, client_id, state_storage_account, state_container,
    client_secret_sealed, version) ON azure_subscriptions TO plumbline_tfstate, plumbline_worker, plumbline_reconciler;
GRANT SELECT (id, business_unit_id, project_id, state_bucket, state_prefix, service_account_sealed, version)
    ON gcp_projects TO plumbline_tfstate, plumbline_worker, plumbline_reconciler;
GRANT SELECT ON state_stores TO plumbline_api, plumbline_tfstate, plumbline_callback, plumbline_worker, plumbline_reconciler;
GRANT INSERT ON state_stores TO plumbline_api, plumbline_tfstate, plumbline_callback, plumbline_reconciler;

-- signin: whom the identity provider vouches for, and what groups give. No password, no session, no secret of any token.
GRANT SELECT (id, email, display_name, is_superadmin, superadmin_by_group, disabled_at, has_password, must_change_password,
    password_set_by, token_generation, oidc_issuer, oidc_subject) ON users TO plumbline_signin;
GRANT INSERT (id, email, display_name, oidc_issuer, oidc_subject),
    UPDATE (email, display_name, is_superadmin, superadmin_by_group, oidc_issuer, oidc_subject, updated_at) ON users
    TO plumbline_signin;
GRANT SELECT, INSERT, UPDATE, DELETE ON memberships TO plumbline_signin;
-- Keys end with the place that they stand on.
GRANT SELECT (id, business_unit_id, user_id, revoked_at), UPDATE (revoked_at, revoked_reason) ON api_keys
    TO plumbline_signin;
GRANT SELECT ON platform_config TO plumbline_signin;
GRANT SELECT, INSERT, UPDATE ON login_attempts, oidc_sign_ins TO plumbline_signin;
-- api trades the codes.
GRANT SELECT, UPDATE ON oidc_sign_ins TO plumbline_api;

-- callback: what executors trade, report and upload. Nothing about people.
GRANT SELECT ON tasks, finished_tasks, queue_units, launch_budget, executors, tickets, runs, run_steps, log_chunks,
    touched_resources, artifacts, blobs, workspaces, tfstates, state_versions, quarantined_states, state_uploads,
    git_credentials, variables, variable_sets, variable_set_workspaces TO plumbline_callback;
GRANT INSERT, UPDATE, DELETE ON tasks, log_chunks TO plumbline_callback;
GRANT INSERT, UPDATE ON queue_units, touched_resources, artifacts, blobs, tfstates, quarantined_states, state_uploads
    TO plumbline_callback;
GRANT INSERT ON finished_tasks, state_versions TO plumbline_callback;
GRANT UPDATE ON launch_budget, executors, tickets, runs, run_steps, workspaces TO plumbline_callback;
GRANT UPDATE (last_used_at) ON git_credentials TO plumbline_callback;
-- What a bundle hands out; written by people alone.
GRANT SELECT ON aws_accounts, azure_subscriptions, gcp_projects, clusters TO plumbline_callback;
-- It signs tokens, and makes the keys that sign.
GRANT SELECT, INSERT ON issuer_keys TO plumbline_callback;

-- worker: claims and launches.
GRANT SELECT ON tasks, finished_tasks, queue_units, launch_budget, executors, tickets, runs, run_steps, workspaces, blobs,
    artifacts, tfstates, state_versions, state_indexes, resources TO plumbline_worker;
GRANT INSERT, UPDATE, DELETE ON tasks TO plumbline_worker;
GRANT INSERT, UPDATE ON queue_units, executors, tickets TO plumbline_worker;
GRANT INSERT ON finished_tasks TO plumbline_worker;
GRANT UPDATE ON launch_budget, runs, run_steps, workspaces TO plumbline_worker;
-- The index of states, and what is found while it is made. The states themselves are not its to change.
GRANT INSERT, UPDATE ON state_indexes TO plumbline_worker;
GRANT INSERT, UPDATE, DELETE ON resources TO plumbline_worker;
GRANT UPDATE (opaque, resource_count, emptied, contradiction) ON state_versions TO plumbline_worker;
GRANT UPDATE (head_resource_count) ON tfstates TO plumbline_worker;

-- outbound: what short tasks find out.
GRANT SELECT ON tasks, finished_tasks, queue_units, workspaces, runs, blobs, git_credentials TO plumbline_outbound;
GRANT UPDATE (last_used_at) ON git_credentials TO plumbline_outbound;
GRANT INSERT, UPDATE, DELETE ON tasks TO plumbline_outbound;
GRANT INSERT, UPDATE ON workspaces, queue_units, blobs TO plumbline_outbound;
GRANT INSERT ON finished_tasks, tfstates TO plumbline_outbound;
-- Whose credentials are to be tried. Of settings those of units alone.
GRANT SELECT ON aws_accounts, azure_subscriptions, gcp_projects, clusters, unit_config TO plumbline_outbound;

GRANT SELECT, UPDATE (jwks, fetched_at) ON ci_issuers TO plumbline_outbound;

-- reconciler: every sweep. It forgets sessions but reads no password.
GRANT SELECT ON user_presence, sessions, login_attempts, idempotency_keys, tasks, finished_tasks, queue_units, launch_budget,
    executors, tickets, runs, run_steps, log_chunks, artifacts, blobs, workspaces, tfstates, state_versions, quarantined_states,
    state_uploads, audit_entries, audit_heads, audit_checkpoints, rekeys, rekey_columns TO plumbline_reconciler;
GRANT UPDATE (expired_at) ON state_versions TO plumbline_reconciler;
GRANT DELETE ON state_versions, quarantined_states, state_uploads TO plumbline_reconciler;
GRANT DELETE ON api_keys, user_presence, sessions, login_attempts, idempotency_keys, finished_tasks, blobs, jwt_secrets
    TO plumbline_reconciler;
GRANT SELECT (id, accepted_until) ON jwt_secrets TO plumbline_reconciler;
GRANT SELECT (kms_key, published_until), DELETE ON issuer_keys TO plumbline_reconciler;
GRANT SELECT (trust_rule_id, expires_at) ON api_keys TO plumbline_reconciler;
GRANT INSERT, UPDATE ON sweep_ticks, queue_units, executors, tickets, artifacts, blobs, tfstates, quarantined_states,
    state_uploads TO plumbline_reconciler;
GRANT INSERT, UPDATE, DELETE ON tasks, log_chunks TO plumbline_reconciler;
-- It claims as the worker does: see there.
GRANT SELECT, INSERT, UPDATE ON state_indexes TO plumbline_reconciler;
GRANT SELECT, INSERT, UPDATE, DELETE ON resources TO plumbline_reconciler;
GRANT UPDATE (opaque, resource_count, emptied, contradiction) ON state_versions TO plumbline_reconciler;
GRANT INSERT ON finished_tasks, state_versions, audit_checkpoints TO plumbline_reconciler;
GRANT UPDATE ON launch_budget, runs, run_steps, workspaces TO plumbline_reconciler;
GRANT UPDATE (stored_at) ON audit_checkpoints TO plumbline_reconciler;
GRANT SELECT (created_at), DELETE ON oidc_sign_ins TO plumbline_reconciler;
-- Locking rows asks for the right to update a column of them; the priority of a finished task means nothing any more.
GRANT UPDATE (priority) ON finished_tasks TO plumbline_reconciler;
-- Sealing again under another root key. Each sealed column needs SELECT of it and of the row's id, and UPDATE of it; those of
-- runs and tasks are above.
GRANT UPDATE (payload) ON finished_tasks TO plumbline_reconciler;
GRANT SELECT (id, value_sealed), UPDATE (value_sealed) ON variables TO plumbline_reconciler;
GRANT SELECT (id, keys_sealed), UPDATE (keys_sealed) ON aws_accounts TO plumbline_reconciler;
GRANT SELECT (id, client_secret_sealed), UPDATE (client_secret_sealed) ON azure_subscriptions TO plumbline_reconciler;
GRANT SELECT (id, service_account_sealed), UPDATE (service_account_sealed) ON gcp_projects TO plumbline_reconciler;
GRANT SELECT (id, kubeconfig_sealed), UPDATE (kubeconfig_sealed) ON clusters TO plumbline_reconciler;
GRANT SELECT (id, secret_sealed), UPDATE (secret_sealed) ON git_credentials TO plumbline_reconciler;
-- How long things are kept is the platform's to say.
GRANT SELECT, UPDATE (sealed) ON platform_config TO plumbline_reconciler;
GRANT SELECT (id, sealed), UPDATE (sealed) ON unit_config TO plumbline_reconciler;
GRANT SELECT (id, sealed), UPDATE (sealed) ON jwt_secrets TO plumbline_reconciler;
GRANT SELECT (id, private_sealed), UPDATE (private_sealed) ON issuer_keys TO plumbline_reconciler;
GRANT UPDATE ON rekeys TO plumbline_reconciler;
GRANT INSERT, UPDATE ON rekey_columns TO plumbline_reconciler;
