//! Git credentials as plain data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::{BusinessUnitId, GitCredentialId, WorkspaceId};
use crate::secrets::SecretText;
use crate::workspaces::Transport;

/// How a credential lets Git in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GitCredentialKind {
    /// A personal access token or a password, over https.
    Token,
    /// A private key, over ssh.
    SshKey,
    /// An installation of a GitHub App, over https: a short-lived token is made at each use.
    GithubApp,
}

impl GitCredentialKind {
    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::SshKey => "ssh_key",
            Self::GithubApp => "github_app",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Token, Self::SshKey, Self::GithubApp].into_iter().find(|kind| kind.as_str() == word)
    }

    /// How Git speaks with the host.
    pub fn transport(self) -> Transport {
        match self {
            Self::Token | Self::GithubApp => Transport::Http,
            Self::SshKey => Transport::Ssh,
        }
    }
}

/// What people may see of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = MaskedGitSecret)]
pub struct MaskedSecret {
    /// Whether there is one.
    pub configured: bool,
    /// Its last four characters; absent for keys, and for secrets that are short.
    pub masked_tail: Option<String>,
}

/// A credential as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct GitCredential {
    /// Its id.
    pub id: GitCredentialId,
    /// The unit whose repositories it is for.
    pub business_unit_id: BusinessUnitId,
    /// Its name.
    pub name: String,
    /// How it lets Git in.
    pub kind: GitCredentialKind,
    /// The only host that it is sent to, with its port unless that is the usual one.
    pub host: String,
    /// Repositories below this path; empty is all of the host.
    pub path_prefix: String,
    /// What goes beside a token.
    pub username: Option<String>,
    /// The token or private key.
    pub secret: MaskedSecret,
    /// The public half of an SSH key: what the forge must know.
    pub public_key: Option<String>,
    /// The keys, or fingerprints of keys, that the host may show.
    pub host_keys: Vec<String>,
    /// The GitHub App.
    pub app_id: Option<String>,
    /// Its installation.
    pub installation_id: Option<i64>,
    /// The API that makes its tokens.
    pub api_url: Option<String>,
    /// The repository that the last test looked at.
    pub test_repo_url: Option<String>,
    /// When it was used last, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// Rises with every edit; the `ETag`.
    pub version: i32,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was edited last.
    pub updated_at: DateTime<Utc>,
}

/// A credential to store.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGitCredential {
    /// 1 to 255 characters, once in the unit.
    pub name: String,
    /// How it lets Git in.
    pub kind: GitCredentialKind,
    /// The host, with `:port` unless it is the usual one.
    pub host: String,
    /// Repositories below this path, such as `org` or `group/team`; absent is all of the host.
    #[serde(default)]
    pub path_prefix: Option<String>,
    /// `token`: what goes beside it; absent is what the forge takes.
    #[serde(default)]
    pub username: Option<String>,
    /// `token`: the token or password.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub token: Option<SecretText>,
    /// `ssh_key`: an OpenSSH private key without a passphrase. `github_app`: the app's private key, as GitHub gives it.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub private_key: Option<SecretText>,
    /// `ssh_key`: lines of `known_hosts`, or fingerprints `SHA256:…`. At least one.
    #[serde(default)]
    pub host_keys: Option<Vec<String>>,
    /// `github_app`: its app id or client id.
    #[serde(default)]
    pub app_id: Option<String>,
    /// `github_app`: its installation.
    #[serde(default)]
    pub installation_id: Option<i64>,
    /// `github_app`: its API; absent is that of the host.
    #[serde(default)]
    pub api_url: Option<String>,
}

/// An edit; what is absent stays. The host stays always: make another credential for another host.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GitCredentialChange {
    /// Another name.
    #[serde(default)]
    pub name: Option<String>,
    /// Another path.
    #[serde(default)]
    pub path_prefix: Option<String>,
    /// Another name beside the token.
    #[serde(default)]
    pub username: Option<String>,
    /// Replaces the token.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub token: Option<SecretText>,
    /// Replaces the private key.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub private_key: Option<SecretText>,
    /// Replaces all host keys.
    #[serde(default)]
    pub host_keys: Option<Vec<String>>,
    /// Another app.
    #[serde(default)]
    pub app_id: Option<String>,
    /// Another installation.
    #[serde(default)]
    pub installation_id: Option<i64>,
    /// Another API; only together with a private key, which the new one is asked with.
    #[serde(default)]
    pub api_url: Option<String>,
}

/// What to test with.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestGitCredential {
    /// A repository that the credential covers; absent is the one of the test before.
    #[serde(default)]
    pub repo_url: Option<String>,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    /// The repository could be read.
    Ok,
    /// The forge, or a rule of ours, said no.
    Refused,
    /// The host showed another key than those that are pinned.
    HostKeyMismatch,
    /// Nobody answered.
    Unreachable,
}

/// The result of the task that tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TestResult {
    /// How it ended.
    pub outcome: TestOutcome,
    /// For people; without secrets.
    pub detail: String,
    /// The repository that was asked.
    pub repo_url: String,
}

/// Who would miss a credential.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct GitCredentialUsage {
    /// How many workspaces have a repository that it is used for.
    pub workspaces_total: usize,
    /// The first hundred of them.
    pub workspaces: Vec<UsingWorkspace>,
    /// When it was used last, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// A workspace whose repository needs the credential.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
#[expect(missing_docs, reason = "the fields are those of a workspace")]
pub struct UsingWorkspace {
    pub id: WorkspaceId,
    pub name: String,
    pub repo_url: String,
}

/// What lets Git in, in the clear. Goes into a bundle and to Git; never into a row, a log or an answer to people.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GitSecret {
    /// Basic authentication.
    Token {
        /// What goes beside it.
        username: String,
        /// The token or password.
        token: String,
    },
    /// An SSH key.
    SshKey {
        /// In OpenSSH's own format.
        private_key: String,
        /// What the host may show.
        host_keys: Vec<String>,
    },
    /// A GitHub App.
    GithubApp(AppKey),
}

/// A GitHub App's installation and its key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppKey {
    /// The app.
    pub app_id: String,
    /// Its installation.
    pub installation_id: i64,
    /// The API that makes its tokens.
    pub api_url: String,
    /// RSA, in PEM.
    pub private_key: String,
}

impl std::fmt::Debug for GitSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Token { .. } => "Token(..)",
            Self::SshKey { .. } => "SshKey(..)",
            Self::GithubApp(_) => "GithubApp(..)",
        })
    }
}

impl std::fmt::Debug for AppKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AppKey(..)")
    }
}

impl GitSecret {
    /// What no log may show.
    pub fn words(&self) -> &str {
        match self {
            Self::Token { token, .. } => token,
            Self::SshKey { private_key, .. } | Self::GithubApp(AppKey { private_key, .. }) => private_key,
        }
    }
}
