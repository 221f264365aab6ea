-- Where runs get their rights in clouds and clusters. Each belongs to one business unit and is found by nothing but unit
-- and name, so no workspace can use another unit's. Secrets are sealed under the key of their own domain.
CREATE TABLE aws_accounts (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    account_id       text NOT NULL CHECK (account_id ~ '^[0-9]{12}$'),
    name             text NOT NULL CHECK (length(name) BETWEEN 1 AND 120),
    description      text,
    default_region   text NOT NULL,
    state_bucket     text,
    state_bucket_region text NOT NULL,
    aws_profile_name text,
    -- Sealed JSON: access key id and secret access key. NULL: the executor's own role assumes the roles below.
    keys_sealed      text,
    plan_role_arn    text,
    apply_role_arn   text,
    -- What the roles' trust policies ask for; ours to choose, so that nobody can name a role of somebody else.
    external_id      text NOT NULL,
    session_duration_seconds integer NOT NULL CHECK (session_duration_seconds BETWEEN 900 AND 43200),
    -- Takes rights away from every session.
    session_policy   jsonb,
    version          integer NOT NULL DEFAULT 1,
    created_by       uuid,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    updated_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT aws_accounts_unit UNIQUE (business_unit_id, id),
    CONSTRAINT aws_accounts_account UNIQUE (business_unit_id, account_id),
    CONSTRAINT aws_accounts_external_id UNIQUE (external_id),
    CONSTRAINT aws_accounts_roles CHECK ((plan_role_arn IS NULL) = (apply_role_arn IS NULL)),
    CONSTRAINT aws_accounts_credentials CHECK (keys_sealed IS NOT NULL OR plan_role_arn IS NOT NULL)
);

CREATE TABLE azure_subscriptions (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    subscription_id  text NOT NULL,
    tenant_id        text NOT NULL,
    client_id        text NOT NULL,
    name             text NOT NULL CHECK (length(name) BETWEEN 1 AND 120),
    description      text,
    default_location text NOT NULL,
    state_storage_account text,
    state_container  text,
    client_secret_sealed text NOT NULL,
    version          integer NOT NULL DEFAULT 1,
    created_by       uuid,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    updated_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT azure_subscriptions_unit UNIQUE (business_unit_id, id),
    CONSTRAINT azure_subscriptions_subscription UNIQUE (business_unit_id, subscription_id)
);

CREATE TABLE gcp_projects (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    project_id       text NOT NULL,
    -- Read from the key.
    client_email     text NOT NULL,
    name             text NOT NULL CHECK (length(name) BETWEEN 1 AND 120),
    description      text,
    default_region   text NOT NULL,
    state_bucket     text,
    state_prefix     text,
    service_account_sealed text NOT NULL,
    version          integer NOT NULL DEFAULT 1,
    created_by       uuid,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    updated_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT gcp_projects_unit UNIQUE (business_unit_id, id),
    CONSTRAINT gcp_projects_project UNIQUE (business_unit_id, project_id)
);

CREATE TABLE clusters (
    id               uuid PRIMARY KEY,
    business_unit_id uuid NOT NULL REFERENCES business_units (id),
    name             text NOT NULL CHECK (length(name) BETWEEN 1 AND 120),
    description      text,
    -- Read from the kubeconfig.
    server_url       text NOT NULL,
    default_namespace text NOT NULL,
    -- Whose credentials a plugin of the kubeconfig uses.
    aws_account_id   text,
    allow_insecure_tls boolean NOT NULL,
    kubeconfig_sealed text NOT NULL,
    version          integer NOT NULL DEFAULT 1,
    created_by       uuid,
    created_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    updated_at       timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT clusters_unit UNIQUE (business_unit_id, id),
    CONSTRAINT clusters_name UNIQUE (business_unit_id, name),
    CONSTRAINT clusters_aws_account FOREIGN KEY (business_unit_id, aws_account_id)
        REFERENCES aws_accounts (business_unit_id, account_id)
);
CREATE INDEX clusters_of_aws_account ON clusters (business_unit_id, aws_account_id) WHERE aws_account_id IS NOT NULL;

-- The columns are new and empty: nothing is scanned, nobody waits.
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
ALTER TABLE workspaces ADD CONSTRAINT workspaces_state_aws_account
    FOREIGN KEY (business_unit_id, state_aws_account_id) REFERENCES aws_accounts (business_unit_id, account_id);
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
ALTER TABLE workspaces ADD CONSTRAINT workspaces_azure_subscription FOREIGN KEY (business_unit_id, azure_subscription_id)
    REFERENCES azure_subscriptions (business_unit_id, subscription_id);
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
ALTER TABLE workspaces ADD CONSTRAINT workspaces_gcp_project FOREIGN KEY (business_unit_id, gcp_project_id)
    REFERENCES gcp_projects (business_unit_id, project_id);
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
ALTER TABLE workspaces ADD CONSTRAINT workspaces_cluster FOREIGN KEY (business_unit_id, cluster_id)
    REFERENCES clusters (business_unit_id, id);
