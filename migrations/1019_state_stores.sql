-- Where states lie: the platform's own store, or a bucket or container of one of the unit's accounts.

-- One row for each place that was ever used. Never changed: what lies there is found there, whatever the account says now.
-- The credentials are the account's, as they are when the place is opened.
CREATE TABLE state_stores (
    id                    uuid PRIMARY KEY,
    business_unit_id      uuid NOT NULL REFERENCES business_units,
    -- Whose place it is; which one it is tells the provider. It goes with its account, which cannot go while a body lies there.
    aws_account_id        uuid,
    azure_subscription_id uuid,
    gcp_project_id        uuid,
    -- Bucket, or container.
    bucket                text NOT NULL,
    -- Of AWS alone.
    region                text,
    -- Of Azure alone.
    storage_account       text,
    -- What names of objects begin with; of GCP alone.
    prefix                text,
    created_at            timestamptz NOT NULL DEFAULT plumbline_now(),
    CONSTRAINT state_stores_unit UNIQUE (business_unit_id, id),
    CONSTRAINT state_stores_place UNIQUE NULLS NOT DISTINCT
        (business_unit_id, aws_account_id, azure_subscription_id, gcp_project_id, bucket, region, storage_account, prefix),
    CONSTRAINT state_stores_account CHECK (num_nonnulls(aws_account_id, azure_subscription_id, gcp_project_id) = 1),
    CONSTRAINT state_stores_aws CHECK ((aws_account_id IS NULL) = (region IS NULL)),
    CONSTRAINT state_stores_azure CHECK ((azure_subscription_id IS NULL) = (storage_account IS NULL)),
    CONSTRAINT state_stores_gcp CHECK (prefix IS NULL OR gcp_project_id IS NOT NULL),
    CONSTRAINT state_stores_aws_account FOREIGN KEY (business_unit_id, aws_account_id)
        REFERENCES aws_accounts (business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT state_stores_azure_subscription FOREIGN KEY (business_unit_id, azure_subscription_id)
        REFERENCES azure_subscriptions (business_unit_id, id) ON DELETE CASCADE,
    CONSTRAINT state_stores_gcp_project FOREIGN KEY (business_unit_id, gcp_project_id)
        REFERENCES gcp_projects (business_unit_id, id) ON DELETE CASCADE
);
CREATE INDEX state_stores_of_aws_account ON state_stores (aws_account_id) WHERE aws_account_id IS NOT NULL;
CREATE INDEX state_stores_of_azure_subscription ON state_stores (azure_subscription_id)
    WHERE azure_subscription_id IS NOT NULL;
CREATE INDEX state_stores_of_gcp_project ON state_stores (gcp_project_id) WHERE gcp_project_id IS NOT NULL;

-- Where the body lies; NULL: in the platform's own store, as all bodies did until now.
ALTER TABLE state_versions ADD COLUMN store_id uuid;
ALTER TABLE quarantined_states ADD COLUMN store_id uuid;
-- Of the head, with the rest of it.
ALTER TABLE tfstates ADD COLUMN head_store_id uuid;
-- An upload's bytes come to the platform's own store. This is where they were copied to, or are about to be.
ALTER TABLE state_uploads ADD COLUMN store_id uuid;

-- Of one unit by construction: a body can never lie in another unit's place. All rows have NULL, which needs no look.
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
ALTER TABLE state_versions ADD CONSTRAINT state_versions_store FOREIGN KEY (business_unit_id, store_id)
    REFERENCES state_stores (business_unit_id, id);
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
ALTER TABLE quarantined_states ADD CONSTRAINT quarantined_states_store FOREIGN KEY (business_unit_id, store_id)
    REFERENCES state_stores (business_unit_id, id);
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
ALTER TABLE state_uploads ADD CONSTRAINT state_uploads_store FOREIGN KEY (business_unit_id, store_id)
    REFERENCES state_stores (business_unit_id, id) ON DELETE SET NULL (store_id);
CREATE INDEX state_versions_store ON state_versions (store_id) WHERE store_id IS NOT NULL;
CREATE INDEX quarantined_states_store ON quarantined_states (store_id) WHERE store_id IS NOT NULL;
CREATE INDEX state_uploads_store ON state_uploads (store_id) WHERE store_id IS NOT NULL;

-- Which kind of store a workspace's state goes to. `automatic`: that of the first of its accounts that has one, AWS before
-- Azure before GCP; the platform's own where none has.
ALTER TABLE workspaces ADD COLUMN state_backend text NOT NULL DEFAULT 'automatic';
-- All rows have the default.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE workspaces ADD CONSTRAINT workspaces_state_backend
    CHECK (state_backend IN ('automatic', 'platform', 's3', 'azureblob', 'gcs'));
