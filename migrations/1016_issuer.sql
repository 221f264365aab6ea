-- Keys of our own OIDC issuer. One signs at a time; the next one is published before it does, and those before it until
-- their tokens are over.
CREATE TABLE issuer_keys (
    -- `kid` in the header of the tokens that it signed.
    id              uuid PRIMARY KEY,
    -- The public half, as it is published: base64url without padding.
    modulus         text NOT NULL,
    exponent        text NOT NULL,
    -- The private half, for the function that signs. NULL: a KMS has it, or it will never sign again.
    private_sealed  text,
    kms_key         text,
    created_at      timestamptz NOT NULL DEFAULT plumbline_now(),
    signs_since     timestamptz,
    retired_at      timestamptz,
    published_until timestamptz,
    CONSTRAINT issuer_keys_kms_key UNIQUE (kms_key),
    CONSTRAINT issuer_keys_private CHECK (
        CASE WHEN retired_at IS NULL THEN num_nonnulls(private_sealed, kms_key) = 1 ELSE private_sealed IS NULL END),
    CONSTRAINT issuer_keys_retired CHECK ((retired_at IS NULL) = (published_until IS NULL)
        AND (retired_at IS NULL OR signs_since IS NOT NULL))
);
CREATE UNIQUE INDEX issuer_keys_signing ON issuer_keys ((1)) WHERE signs_since IS NOT NULL AND retired_at IS NULL;
CREATE UNIQUE INDEX issuer_keys_next ON issuer_keys ((1)) WHERE signs_since IS NULL;

-- Set: the account's roles trust tokens of this issuer, and no keys are stored. A token opens roles and nothing else; beside
-- keys it would never be used. The columns are new and empty: nothing is scanned, nobody waits, here and below.
ALTER TABLE aws_accounts ADD COLUMN oidc_audience text;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE aws_accounts ADD CONSTRAINT aws_accounts_trust
    CHECK (oidc_audience IS NULL OR (keys_sealed IS NULL AND plan_role_arn IS NOT NULL));

-- Set: the subscription's service principal trusts tokens of this issuer, and no secret of it is stored.
ALTER TABLE azure_subscriptions ADD COLUMN oidc_audience text;
-- What reads it knows of accounts without a secret since this migration.
-- squawk-ignore ban-drop-not-null
ALTER TABLE azure_subscriptions ALTER COLUMN client_secret_sealed DROP NOT NULL;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE azure_subscriptions ADD CONSTRAINT azure_subscriptions_trust
    CHECK (num_nonnulls(client_secret_sealed, oidc_audience) = 1);

-- Set: the provider of a workload identity pool that trusts tokens of this issuer. Runs then act as `client_email`, and no
-- key of it is stored.
ALTER TABLE gcp_projects ADD COLUMN workload_identity_provider text;
-- squawk-ignore ban-drop-not-null
ALTER TABLE gcp_projects ALTER COLUMN service_account_sealed DROP NOT NULL;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE gcp_projects ADD CONSTRAINT gcp_projects_trust
    CHECK (num_nonnulls(service_account_sealed, workload_identity_provider) = 1);
