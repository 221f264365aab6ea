//! Reading a kubeconfig strictly, and writing it anew with nothing in it but its current context.
//!
//! Whatever is kept was looked at: `kubectl` and the providers read what we wrote, not what somebody sent. A kubeconfig can
//! name files to read, programs to run and proxies to go through; of these only known plugins are left.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_norway::Value;
use url::Url;

use super::exec_plugin::ExecPlugin;
use crate::cloud_accounts::rules::refuse;
use crate::cloud_accounts::tasks::{ClusterTrial, WayIn};
use crate::secrets::SecretText;
use crate::workspaces::InvalidField;

const FIELD: &str = "kubeconfig";
const BYTES_MAX: usize = 128 << 10;
const ENTRIES_MAX: usize = 100;
const URL_BYTES_MAX: usize = 2048;
const TEXT_CHARS_MAX: usize = 16 << 10;
/// What may not stand there, and why: the names that people will meet.
const REFUSED: [(&str, &str); 6] = [
    ("certificate-authority", "is a file of another machine: use certificate-authority-data"),
    ("client-certificate", "is a file of another machine: use client-certificate-data"),
    ("client-key", "is a file of another machine: use client-key-data"),
    ("tokenFile", "is a file of another machine: use token"),
    ("auth-provider", "is not supported: use exec or token"),
    ("proxy-url", "is not allowed"),
];

/// A kubeconfig with one context.
#[derive(Clone, PartialEq)]
pub struct Kubeconfig(File);

impl std::fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kubeconfig(..)")
    }
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    #[serde(default, skip_serializing)]
    preferences: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    extensions: Option<IgnoredAny>,
    clusters: Vec<NamedServer>,
    users: Vec<NamedUser>,
    contexts: Vec<NamedContext>,
    #[serde(rename = "current-context")]
    current_context: String,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedServer {
    name: String,
    cluster: Server,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Server {
    server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate_authority_data: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    insecure_skip_tls_verify: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tls_server_name: Option<String>,
    #[serde(default, skip_serializing)]
    disable_compression: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    extensions: Option<IgnoredAny>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct User {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_certificate_data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_key_data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exec: Option<ExecPlugin>,
    #[serde(default, skip_serializing)]
    extensions: Option<IgnoredAny>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Context {
    cluster: String,
    user: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(default, skip_serializing)]
    extensions: Option<IgnoredAny>,
}

impl Kubeconfig {
    /// Reads and checks all of it; keeps the current context.
    pub fn parse(text: &str, allow_insecure_tls: bool) -> Result<Self, InvalidField> {
        if text.len() > BYTES_MAX {
            return refuse(FIELD, "must have at most 128 KiB");
        }
        if has_anchor(text) {
            return refuse(
                FIELD,
                "must not have YAML anchors or aliases (& and * at the beginning of a word)",
            );
        }
        // The parser's words could repeat a piece of a secret.
        let Ok(value) = serde_norway::from_str::<Value>(text) else {
            return refuse(FIELD, "must be one YAML document without duplicate keys");
        };
        name_refused(&value)?;
        let Ok(file) = serde_norway::from_value::<File>(value) else {
            return refuse(
                FIELD,
                "must have apiVersion, kind, clusters, users, contexts and current-context, and only known fields in them",
            );
        };
        file.check(allow_insecure_tls)?;
        file.current().map(Self)
    }

    /// Reads what was kept.
    pub fn from_kept(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok().map(Self)
    }

    /// What a tool reads: JSON, which is YAML.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.0).expect("plain strings are JSON")
    }

    /// The API server.
    pub fn server_url(&self) -> &str {
        self.0.clusters.first().map_or("", |one| &one.cluster.server)
    }

    /// The static token, if that is the way in.
    pub fn token(&self) -> Option<&str> {
        self.0.users.first().and_then(|one| one.user.token.as_deref())
    }

    /// The name of the EKS cluster, if a plugin of AWS would only ask for its token.
    pub fn eks_cluster_name(&self) -> Option<&str> {
        self.0.users.first().and_then(|one| one.user.exec.as_ref()).and_then(ExecPlugin::eks_cluster_name)
    }

    /// Everything in it that no log may show.
    pub fn secrets(&self) -> Vec<&str> {
        let users = self.0.users.iter().map(|one| &one.user);
        users
            .flat_map(|user| [&user.token, &user.password, &user.client_key_data])
            .flatten()
            .map(String::as_str)
            .collect()
    }

    /// How its user gets in without a program; why a test cannot, otherwise.
    pub(in crate::cloud_accounts) fn way_in(&self) -> Result<WayIn, &'static str> {
        let user = &self.0.users.first().ok_or("the kubeconfig has no user")?.user;
        if let Some(token) = &user.token {
            return Ok(WayIn::Header(SecretText::new(format!("Bearer {token}"))));
        }
        if let (Some(certificate), Some(key)) = (&user.client_certificate_data, &user.client_key_data) {
            let both = [pem(certificate), b"\n".to_vec(), pem(key)].concat();
            let both = String::from_utf8(both).map_err(|_| "the client certificate or its key is no PEM")?;
            return Ok(WayIn::Certificate(SecretText::new(both)));
        }
        if let (Some(name), Some(password)) = (&user.username, &user.password) {
            let both = STANDARD.encode(format!("{name}:{password}"));
            return Ok(WayIn::Header(SecretText::new(format!("Basic {both}"))));
        }
        if user.exec.is_some() {
            return Err(
                "its plugin runs in runs alone: link the AWS account that opens it, or see what a run says",
            );
        }
        Err("the user of the kubeconfig has no token, certificate or password")
    }

    /// What a test has to know beside that.
    pub(in crate::cloud_accounts) fn trial(&self, way_in: WayIn) -> ClusterTrial {
        let server = self.0.clusters.first().map(|one| &one.cluster);
        ClusterTrial {
            server_url: self.server_url().to_owned(),
            context: self.0.current_context.clone(),
            authorities: server.and_then(|one| one.certificate_authority_data.as_deref()).map(pem),
            is_unchecked: server.is_some_and(|one| one.insecure_skip_tls_verify),
            server_name: server.and_then(|one| one.tls_server_name.clone()),
            way_in,
        }
    }

    /// Refuses what was kept, if today's settings do not allow it.
    pub fn check_again(&self, allow_insecure_tls: bool) -> Result<(), InvalidField> {
        self.0.check(allow_insecure_tls)
    }
}

impl File {
    fn check(&self, allow_insecure_tls: bool) -> Result<(), InvalidField> {
        if (self.api_version.as_str(), self.kind.as_str()) != ("v1", "Config") {
            return refuse(FIELD, "apiVersion must be v1, and kind must be Config");
        }
        if [self.clusters.len(), self.users.len(), self.contexts.len()]
            .iter()
            .any(|count| *count > ENTRIES_MAX)
        {
            return refuse(FIELD, "may have at most 100 clusters, users and contexts");
        }
        let contexts = self.contexts.iter().map(|one| &one.context);
        let names = contexts
            .flat_map(|one| [Some(&one.cluster), Some(&one.user), one.namespace.as_ref()])
            .flatten()
            .chain(self.contexts.iter().map(|one| &one.name))
            .chain(self.clusters.iter().map(|one| &one.name))
            .chain(self.users.iter().map(|one| &one.name))
            .chain([&self.current_context]);
        for name in names {
            if let Err(why) = check_text("names", Some(name)) {
                return refuse(FIELD, why);
            }
        }
        for (at, NamedServer { cluster, .. }) in self.clusters.iter().enumerate() {
            if let Err(why) = cluster.check(allow_insecure_tls) {
                return refuse(FIELD, format!("clusters[{at}].cluster.{why}"));
            }
        }
        for (at, NamedUser { user, .. }) in self.users.iter().enumerate() {
            if let Err(why) = user.check() {
                return refuse(FIELD, format!("users[{at}].user.{why}"));
            }
        }
        Ok(())
    }

    /// The current context, its cluster and its user, each of which is there exactly once.
    fn current(self) -> Result<Self, InvalidField> {
        let Some(context) = only(self.contexts, |one| one.name == self.current_context) else {
            return refuse(FIELD, "current-context: must name one context");
        };
        let Some(server) = only(self.clusters, |one| one.name == context.context.cluster) else {
            return refuse(FIELD, "current-context: must name one cluster");
        };
        let Some(user) = only(self.users, |one| one.name == context.context.user) else {
            return refuse(FIELD, "current-context: must name one user");
        };
        Ok(Self {
            api_version: self.api_version,
            kind: self.kind,
            preferences: None,
            extensions: None,
            clusters: vec![server],
            users: vec![user],
            contexts: vec![context],
            current_context: self.current_context,
        })
    }
}

/// Two of one name would be read by one tool as the first and by another as the last.
fn only<T>(all: Vec<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    let mut found = all.into_iter().filter(is_it);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

impl Server {
    fn check(&self, allow_insecure_tls: bool) -> Result<(), String> {
        let url = Url::parse(&self.server).ok().filter(|url| {
            url.scheme() == "https"
                && url.host_str().is_some()
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        });
        // The parser of addresses passes over what stands in none: what is kept must be what was looked at.
        let is_written_so =
            self.server.bytes().all(|b| b.is_ascii_graphic()) && self.server.len() <= URL_BYTES_MAX;
        if url.is_none() || !is_written_so {
            return Err("server: must be an address with https:// and nothing behind its path".into());
        }
        if self.insecure_skip_tls_verify && !allow_insecure_tls {
            return Err("insecure-skip-tls-verify: needs allow_insecure_tls beside the kubeconfig".into());
        }
        check_base64("certificate-authority-data", self.certificate_authority_data.as_deref())?;
        check_text("tls-server-name", self.tls_server_name.as_deref())
    }
}

impl User {
    fn check(&self) -> Result<(), String> {
        check_base64("client-certificate-data", self.client_certificate_data.as_deref())?;
        check_base64("client-key-data", self.client_key_data.as_deref())?;
        check_text("token", self.token.as_deref())?;
        check_text("username", self.username.as_deref())?;
        check_text("password", self.password.as_deref())?;
        self.exec.as_ref().map_or(Ok(()), |exec| exec.check().map_err(|why| format!("exec.{why}")))
    }
}

/// What stands in a field that was checked.
fn pem(data: &str) -> Vec<u8> {
    let plain: String = data.split_whitespace().collect();
    STANDARD.decode(plain).unwrap_or_default()
}

fn check_base64(name: &str, data: Option<&str>) -> Result<(), String> {
    // Tools that wrap lines leave breaks in it.
    let plain: String = data.unwrap_or_default().split_whitespace().collect();
    if STANDARD.decode(plain).is_ok() { Ok(()) } else { Err(format!("{name}: must be base64")) }
}

fn check_text(name: &str, text: Option<&str>) -> Result<(), String> {
    let is_fine = |text: &str| text.len() <= TEXT_CHARS_MAX && !text.chars().any(char::is_control);
    if text.is_none_or(is_fine) { Ok(()) } else { Err(format!("{name}: must be one line of at most 16 KiB")) }
}

/// Whether some word begins as an anchor or an alias does. A few aliases can stand for millions of nodes, and no
/// kubeconfig needs one. Words in quotes count, too: to know that they are in quotes one would have to parse it.
fn has_anchor(text: &str) -> bool {
    let mut before = None;
    text.chars().any(|c| {
        let begins = matches!(c, '&' | '*') && !before.is_some_and(|b: char| b.is_ascii_alphanumeric());
        before = Some(c);
        begins
    })
}

/// A refusal that says where, for what people are likely to have in their files.
fn name_refused(value: &Value) -> Result<(), InvalidField> {
    for (list, inside) in [("clusters", "cluster"), ("users", "user")] {
        let entries = value.get(list).and_then(Value::as_sequence);
        for (at, entry) in entries.into_iter().flatten().enumerate() {
            let found =
                REFUSED.iter().find(|(name, _)| entry.get(inside).is_some_and(|one| one.get(name).is_some()));
            if let Some((name, why)) = found {
                return refuse(FIELD, format!("{list}[{at}].{inside}.{name}: {why}"));
            }
        }
    }
    Ok(())
}
