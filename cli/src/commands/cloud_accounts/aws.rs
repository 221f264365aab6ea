//! `plumb account aws`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::fields::{Named, SecretSource, read_file};
use super::kind::{Kind, text};
use crate::api::routes;
use crate::app::App;
use crate::args::PageArgs;
use crate::failure::Usage;
use crate::outcome::Outcome;

const AWS: Kind = Kind {
    noun: "AWS account",
    list: routes::LIST_AWS_ACCOUNTS,
    create: routes::CREATE_AWS_ACCOUNT,
    get: routes::GET_AWS_ACCOUNT,
    update: routes::UPDATE_AWS_ACCOUNT,
    delete: routes::DELETE_AWS_ACCOUNT,
    known_by: "account_id",
    secrets: &["secret_access_key", "access_key_id"],
    fields: &[
        "account_id",
        "description",
        "default_region",
        "aws_profile_name",
        "plan_role_arn",
        "apply_role_arn",
        "external_id",
        "session_duration_seconds",
        "session_policy",
        "oidc_audience",
        "state_bucket",
        "state_bucket_region",
    ],
};

/// `plumb account aws …`
#[derive(Debug, Subcommand)]
pub enum AwsCommand {
    /// List the accounts of the business unit.
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one, with the external id that its roles must ask for (admins).
    Show {
        /// Its number, name or id.
        account: String,
    },
    /// Register an account: with keys, or with roles for plans and applies, or both.
    #[command(after_help = "Examples:
  plumb account aws create 123456789012 --name payments --access-key-id AKIA… --secret-file key.txt
  plumb account aws create 123456789012 --name payments --plan-role ARN --apply-role ARN
  plumb account aws create 123456789012 --name payments --plan-role ARN --apply-role ARN --oidc-audience sts.amazonaws.com
  plumb account aws show 123456789012      the external id for the roles' trust policies")]
    Create {
        /// Its number: twelve digits.
        account_id: String,
        #[command(flatten)]
        fields: Box<Fields>,
    },
    /// Change fields of an account; what you do not name stays.
    Update {
        /// Its number, name or id.
        account: String,
        #[command(flatten)]
        fields: Box<Fields>,
    },
    /// Forget an account that nothing uses.
    Delete {
        /// Its number, name or id.
        account: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Ask AWS who its keys are, and whether they may assume its roles.
    Test {
        /// Its number, name or id.
        account: String,
        /// Do not wait for the result; print the task.
        #[arg(long)]
        no_wait: bool,
    },
}

/// What can be given and changed. `none` clears what need not be.
#[derive(Debug, Args)]
pub struct Fields {
    /// For people.
    #[arg(long)]
    name: Option<String>,
    /// For people; `none` clears it.
    #[arg(long)]
    description: Option<String>,
    /// The region of calls that name none.
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// The id of a user's access key; its secret comes from stdin or a file.
    #[arg(long, value_name = "ID")]
    access_key_id: Option<String>,
    #[command(flatten)]
    secret: SecretSource,
    /// Remove the keys: executors' own role then assumes the roles.
    #[arg(long, conflicts_with = "access_key_id")]
    no_keys: bool,
    /// The role that plans act in; `none` clears it.
    #[arg(long, value_name = "ARN")]
    plan_role: Option<String>,
    /// The role that applies act in; `none` clears it.
    #[arg(long, value_name = "ARN")]
    apply_role: Option<String>,
    /// How long a session lives, in seconds.
    #[arg(long, value_name = "SECONDS")]
    session_duration: Option<i32>,
    /// A file with an IAM policy that takes rights away from every session.
    #[arg(long, value_name = "FILE")]
    session_policy: Option<PathBuf>,
    /// The roles trust tokens of this installation's issuer for this audience, and there are no keys; `none` clears it.
    #[arg(long, value_name = "AUDIENCE")]
    oidc_audience: Option<String>,
    /// The profile that configurations ask for; `none` clears it.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// The bucket where states lie from then on; `none`: in the installation's own store.
    #[arg(long, value_name = "BUCKET")]
    state_bucket: Option<String>,
    /// Where that bucket is.
    #[arg(long, value_name = "REGION")]
    state_bucket_region: Option<String>,
}

impl Fields {
    fn named(self) -> anyhow::Result<Named> {
        let secret = self.secret.read("secret access key")?;
        if self.access_key_id.is_some() != secret.is_some() {
            return Err(Usage::error("--access-key-id goes with --secret-stdin or --secret-file"));
        }
        let policy = match &self.session_policy {
            None => None,
            Some(path) => Some(
                serde_json::from_str::<Value>(&read_file(path)?)
                    .with_context(|| format!("{} is not JSON", path.display()))?,
            ),
        };
        let removed = || self.no_keys.then_some(Value::Null);
        Ok(Named::default()
            .text("name", self.name)
            .clearable("description", self.description)
            .text("default_region", self.region)
            .value("access_key_id", self.access_key_id.map(Value::from).or_else(removed))
            .value("secret_access_key", secret.map(Value::from).or_else(removed))
            .clearable("plan_role_arn", self.plan_role)
            .clearable("apply_role_arn", self.apply_role)
            .value("session_duration_seconds", self.session_duration.map(Value::from))
            .value("session_policy", policy)
            .clearable("oidc_audience", self.oidc_audience)
            .clearable("aws_profile_name", self.profile)
            .clearable("state_bucket", self.state_bucket)
            .text("state_bucket_region", self.state_bucket_region))
    }
}

/// Runs one of them.
pub(super) async fn run(app: &App, command: AwsCommand) -> anyhow::Result<Outcome> {
    match command {
        AwsCommand::List { page } => AWS.list(app, page).await,
        AwsCommand::Show { account } => AWS.show(app, &account).await,
        AwsCommand::Create { account_id, fields } => {
            AWS.create(app, fields.named()?.text("account_id", Some(account_id)).into_body()?).await
        }
        AwsCommand::Update { account, fields } => {
            AWS.update(app, &account, fields.named()?.into_body()?).await
        }
        AwsCommand::Delete { account, yes } => AWS.delete(app, &account, yes).await,
        AwsCommand::Test { account, no_wait } => test(app, &account, no_wait).await,
    }
}

async fn test(app: &App, account: &str, no_wait: bool) -> anyhow::Result<Outcome> {
    AWS.test(app, (routes::TEST_AWS_ACCOUNT, "asking AWS"), account, no_wait, |found| {
        let arns = found["assumed_arns"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let first = format!("It works: AWS knows the keys as {}.", text(found, "caller_arn"));
        std::iter::once(first).chain(arns.map(|arn| format!("Runs act as {arn}."))).collect()
    })
    .await
}
