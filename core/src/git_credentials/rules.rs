//! What a credential may be.

use url::{Host, Url};

use super::model::{
    AppKey, GitCredential, GitCredentialChange, GitCredentialKind, GitSecret, NewGitCredential,
};
use super::places::{own_port, with_port};
use super::{app_keys, ssh_keys};
use crate::secrets::SecretText;
use crate::workspaces::{InvalidField, Transport};

const NAME_CHARS_MAX: usize = 255;
const USERNAME_CHARS_MAX: usize = 255;
const PREFIX_BYTES_MAX: usize = 512;
const TOKEN_BYTES_MAX: usize = 4096;
const KEY_BYTES_MAX: usize = 16 << 10;
const HOST_KEYS_MAX: usize = 20;
const HOST_BYTES_MAX: usize = 260;
const APP_ID_BYTES_MAX: usize = 64;
/// A secret shorter than this shows no tail.
const TAIL_FROM_CHARS: usize = 12;
const TAIL_CHARS: usize = 4;

/// A credential that passed every rule. Cannot be made otherwise.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    pub(super) name: String,
    pub(super) kind: GitCredentialKind,
    pub(super) host: String,
    pub(super) path_prefix: String,
    pub(super) username: Option<String>,
    pub(super) public_key: Option<String>,
    pub(super) host_keys: Vec<String>,
    pub(super) app_id: Option<String>,
    pub(super) installation_id: Option<i64>,
    pub(super) api_url: Option<String>,
    /// `None` keeps the one that is stored.
    pub(super) secret: Option<NewSecret>,
}

/// A secret to seal.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct NewSecret {
    pub text: String,
    pub masked_tail: Option<String>,
}

impl Settings {
    /// Checks every field. `allow_http` lets an API be reached without TLS: on one machine alone.
    pub fn validate(new: NewGitCredential, allow_http: bool) -> Result<Self, InvalidField> {
        check_owners(&new)?;
        let kind = new.kind;
        let host = host("host", &new.host, kind.transport())?;
        let secret = match kind {
            GitCredentialKind::Token => {
                new.token.map(token).ok_or(InvalidField::new("token", "is needed for this kind"))?
            }
            GitCredentialKind::SshKey | GitCredentialKind::GithubApp => {
                let text =
                    new.private_key.ok_or(InvalidField::new("private_key", "is needed for this kind"))?;
                private_key(kind, &text)
            }
        }?;
        let is_app = kind == GitCredentialKind::GithubApp;
        let mut settings = Self {
            name: new.name,
            kind,
            path_prefix: new.path_prefix.unwrap_or_default(),
            username: new
                .username
                .or_else(|| (kind == GitCredentialKind::Token).then(|| default_username(&host).into())),
            public_key: secret.public_key,
            host_keys: new.host_keys.unwrap_or_default(),
            app_id: new.app_id,
            installation_id: new.installation_id,
            api_url: new.api_url.or_else(|| is_app.then(|| default_api(&host))),
            secret: Some(secret.secret),
            host,
        };
        settings.check(allow_http)?;
        Ok(settings)
    }

    /// The stored credential with an edit over it.
    pub fn change(
        now: GitCredential,
        change: GitCredentialChange,
        allow_http: bool,
    ) -> Result<Self, InvalidField> {
        let kind = now.kind;
        // Whoever may edit must not learn what is stored by sending it to a place of their own.
        if change.api_url.is_some() && change.private_key.is_none() {
            return Err(InvalidField::new("api_url", "changes only together with private_key"));
        }
        let given = NewGitCredential {
            name: change.name.unwrap_or(now.name),
            kind,
            host: now.host,
            path_prefix: Some(change.path_prefix.unwrap_or(now.path_prefix)),
            username: change.username.or(now.username),
            token: change.token,
            private_key: change.private_key,
            host_keys: change.host_keys.or((kind == GitCredentialKind::SshKey).then_some(now.host_keys)),
            app_id: change.app_id.or(now.app_id),
            installation_id: change.installation_id.or(now.installation_id),
            api_url: change.api_url.or(now.api_url),
        };
        check_owners(&given)?;
        let secret = match (given.token, given.private_key) {
            (Some(text), _) => Some(token(text)?),
            (None, Some(text)) => Some(private_key(kind, &text)?),
            (None, None) => None,
        };
        let mut settings = Self {
            name: given.name,
            kind,
            host: given.host,
            path_prefix: given.path_prefix.unwrap_or_default(),
            username: given.username,
            public_key: secret.as_ref().and_then(|secret| secret.public_key.clone()).or(now.public_key),
            host_keys: given.host_keys.unwrap_or_default(),
            app_id: given.app_id,
            installation_id: given.installation_id,
            api_url: given.api_url,
            secret: secret.map(|secret| secret.secret),
        };
        settings.check(allow_http)?;
        Ok(settings)
    }

    fn check(&mut self, allow_http: bool) -> Result<(), InvalidField> {
        let named = (1..=NAME_CHARS_MAX).contains(&self.name.chars().count()) && is_plain(&self.name);
        if !named || self.name.trim().is_empty() {
            return Err(InvalidField::new(
                "name",
                "must have 1 to 255 characters, not blank, none of control",
            ));
        }
        self.path_prefix = path_prefix(&self.path_prefix)?;
        if let Some(username) = &self.username
            && (username.is_empty() || username.chars().count() > USERNAME_CHARS_MAX || !is_plain(username))
        {
            return Err(InvalidField::new("username", "must have 1 to 255 characters, none of control"));
        }
        if self.kind == GitCredentialKind::SshKey {
            self.host_keys = host_keys(&self.host_keys, &self.host)?;
        }
        if self.kind == GitCredentialKind::GithubApp {
            let id = self.app_id.as_deref().ok_or(InvalidField::new("app_id", "is needed for this kind"))?;
            let is_word = id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            if id.is_empty() || id.len() > APP_ID_BYTES_MAX || !is_word {
                return Err(InvalidField::new("app_id", "must be the id of an app"));
            }
            if self.installation_id.is_none_or(|id| id <= 0) {
                return Err(InvalidField::new("installation_id", "must be the number of an installation"));
            }
            self.api_url = Some(api_url(self.api_url.as_deref().unwrap_or_default(), allow_http)?);
        }
        Ok(())
    }
}

impl GitCredential {
    /// The secret with all that is used beside it.
    pub fn with_secret(&self, text: String) -> GitSecret {
        match self.kind {
            GitCredentialKind::Token => {
                GitSecret::Token { username: self.username.clone().unwrap_or_default(), token: text }
            }
            GitCredentialKind::SshKey => {
                GitSecret::SshKey { private_key: text, host_keys: self.host_keys.clone() }
            }
            GitCredentialKind::GithubApp => GitSecret::GithubApp(AppKey {
                app_id: self.app_id.clone().unwrap_or_default(),
                installation_id: self.installation_id.unwrap_or_default(),
                api_url: self.api_url.clone().unwrap_or_default(),
                private_key: text,
            }),
        }
    }
}

/// The host, in lower case, with its port unless that is the transport's own.
fn host(field: &'static str, text: &str, transport: Transport) -> Result<String, InvalidField> {
    let wrong = || InvalidField::new(field, "must be a host name or address, with :port if it is unusual");
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').ok_or_else(wrong)?;
            let port = if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or_else(wrong)?) };
            (format!("[{address}]"), port)
        }
        None => {
            let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
            (name.to_owned(), port)
        }
    };
    let port = match port {
        None => own_port(transport),
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong)?
        }
        Some(_) => return Err(wrong()),
    };
    if text.len() > HOST_BYTES_MAX || name.starts_with(['-', '.']) {
        return Err(wrong());
    }
    let name = match Host::parse(&name).map_err(|_| wrong())? {
        Host::Domain(name) if name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) => name,
        Host::Domain(_) => return Err(wrong()),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    };
    Ok(with_port(&name, port, transport))
}

/// What forges take as the name beside a token.
fn default_username(host: &str) -> &'static str {
    let name = host.split(':').next().unwrap_or_default();
    if name == "bitbucket.org" {
        "x-token-auth"
    } else if name.split('.').any(|label| label == "gitlab") {
        "oauth2"
    } else {
        "x-access-token"
    }
}

fn default_api(host: &str) -> String {
    if host == "github.com" { "https://api.github.com".into() } else { format!("https://{host}/api/v3") }
}

/// Every field belongs to the kind.
fn check_owners(new: &NewGitCredential) -> Result<(), InvalidField> {
    use GitCredentialKind::{GithubApp, SshKey, Token};
    let owners: [(&'static str, bool, &[GitCredentialKind]); 7] = [
        ("username", new.username.is_some(), &[Token]),
        ("token", new.token.is_some(), &[Token]),
        ("private_key", new.private_key.is_some(), &[SshKey, GithubApp]),
        ("host_keys", new.host_keys.is_some(), &[SshKey]),
        ("app_id", new.app_id.is_some(), &[GithubApp]),
        ("installation_id", new.installation_id.is_some(), &[GithubApp]),
        ("api_url", new.api_url.is_some(), &[GithubApp]),
    ];
    match owners.iter().find(|(_, is_given, kinds)| *is_given && !kinds.contains(&new.kind)) {
        Some((field, ..)) => {
            Err(InvalidField::new(field, format!("does not belong to the kind {}", new.kind.as_str())))
        }
        None => Ok(()),
    }
}

struct Checked {
    secret: NewSecret,
    public_key: Option<String>,
}

fn token(text: SecretText) -> Result<Checked, InvalidField> {
    if text.is_empty() || text.len() > TOKEN_BYTES_MAX || !is_plain(&text) {
        return Err(InvalidField::new("token", "must have 1 to 4,096 bytes, no control characters"));
    }
    let length = text.chars().count();
    let masked_tail =
        (length >= TAIL_FROM_CHARS).then(|| text.chars().skip(length - TAIL_CHARS).collect::<String>());
    Ok(Checked { secret: NewSecret { text: text.expose().to_owned(), masked_tail }, public_key: None })
}

/// Keys show no tail: the end of a key is part of it.
fn private_key(kind: GitCredentialKind, text: &str) -> Result<Checked, InvalidField> {
    let wrong = |reason: &str| InvalidField::new("private_key", reason);
    if text.len() > KEY_BYTES_MAX {
        return Err(wrong("must have at most 16 KiB"));
    }
    let (text, public_key) = if kind == GitCredentialKind::SshKey {
        let key = ssh_keys::private_key(text).map_err(wrong)?;
        (key.text, Some(key.public))
    } else {
        (app_keys::normalise(text).map_err(wrong)?, None)
    };
    Ok(Checked { secret: NewSecret { text, masked_tail: None }, public_key })
}

/// Plain segments, so that a prefix means the same to a shell, to Git and to us.
fn path_prefix(text: &str) -> Result<String, InvalidField> {
    let text = text.trim_matches('/');
    let text = text.strip_suffix(".git").unwrap_or(text);
    let is_plain = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~+@%".contains(&b))
    };
    if text.is_empty() || (text.len() <= PREFIX_BYTES_MAX && text.split('/').all(is_plain)) {
        Ok(text.to_owned())
    } else {
        Err(InvalidField::new("path_prefix", "must be a path like org or group/team, of at most 512 bytes"))
    }
}

fn host_keys(lines: &[String], host: &str) -> Result<Vec<String>, InvalidField> {
    let wrong = |reason: String| InvalidField::new("host_keys", reason);
    if lines.is_empty() {
        return Err(wrong("needs the host's key: a host that is not known is not asked".into()));
    }
    if lines.len() > HOST_KEYS_MAX {
        return Err(wrong("must be at most 20".into()));
    }
    let mut keys = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let key = ssh_keys::host_key(line, host).map_err(|reason| wrong(format!("{at}: {reason}")))?;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

fn api_url(text: &str, allow_http: bool) -> Result<String, InvalidField> {
    let wrong = |reason: &str| InvalidField::new("api_url", reason);
    let url = Url::parse(text).map_err(|_| wrong("must be an address with https://"))?;
    if url.scheme() != "https" && !(allow_http && url.scheme() == "http") {
        return Err(wrong("must be an address with https://"));
    }
    let has_login = !url.username().is_empty() || url.password().is_some();
    if has_login || url.query().is_some() || url.fragment().is_some() || text.len() > HOST_BYTES_MAX {
        return Err(wrong("must be an address and no more"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn is_plain(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
