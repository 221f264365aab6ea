//! The server that a matrix runs against.

use async_trait::async_trait;

/// How a client is told to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods {
    /// `update_method`.
    pub update: &'static str,
    /// `lock_method`.
    pub lock: &'static str,
    /// `unlock_method`.
    pub unlock: &'static str,
    /// What follows the address in `lock_address` and `unlock_address`.
    pub lock_suffix: &'static str,
}

impl Methods {
    /// What the client does unless told otherwise.
    pub const USUAL: Self = Self { update: "POST", lock: "LOCK", unlock: "UNLOCK", lock_suffix: "" };
    /// What every gateway passes on.
    pub const TWINS: Self = Self { update: "PUT", lock: "POST", unlock: "DELETE", lock_suffix: "/lock" };
}

/// Whose credentials a client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// May do everything, force-unlock included.
    Admin,
    /// The same, by an API key.
    ApiKey,
    /// The same, with `unit/<slug>` as the user name.
    OfANamedUnit,
    /// May write, but not force-unlock.
    Writer,
    /// May read nothing of a state.
    Viewer,
    /// Not known to the server.
    Stranger,
}

/// A state of its own for one case.
#[derive(Clone, Debug)]
pub struct Place {
    /// The state's URL.
    pub address: String,
    /// How clients are told to speak to it.
    pub methods: Methods,
}

/// What the server knows and no client sees.
#[derive(Clone, Debug, Default)]
pub struct Insight {
    /// Of the accepted versions, oldest first.
    pub serials: Vec<i64>,
    /// Of the accepted versions.
    pub lineages: Vec<String>,
    /// How many bodies wait for a person.
    pub quarantined: usize,
    /// Who holds the lock.
    pub lock_id: Option<String>,
    /// What happened, oldest first.
    pub audit: Vec<String>,
}

/// What a case asks of the server beside its protocol.
#[derive(Clone, Debug)]
pub enum Favour {
    /// The next write may bring another lineage.
    AcceptNextLineage,
    /// Only runs write from now on.
    RunsOnly,
    /// A state of this many bytes is put there, larger than a request may be.
    Fill(usize),
}

/// A server under test.
#[async_trait]
pub trait Target: Send + Sync {
    /// Whether it is Plumbline, whose statuses are expected to the digit, or any server.
    fn is_exact(&self) -> bool;

    /// An empty state that no other case uses.
    async fn fresh(&self) -> anyhow::Result<Place>;

    /// User name and password; `None` if the server has no such user.
    async fn credentials(&self, who: Who, place: &Place) -> anyhow::Result<Option<(String, String)>>;

    /// What the server knows; `None` if it cannot be asked.
    async fn look(&self, place: &Place) -> anyhow::Result<Option<Insight>>;

    /// Whether the favour was done.
    async fn favour(&self, place: &Place, favour: &Favour) -> anyhow::Result<bool>;
}

/// A server of which nothing is known but its address.
#[derive(Debug)]
pub struct AnyServer {
    /// With `{}` where the name of a state goes.
    pub template: String,
    /// For names that were not used before.
    pub nonce: String,
    /// User name and password.
    pub login: (String, String),
    /// How clients are told to speak to it.
    pub methods: Methods,
    made: std::sync::atomic::AtomicUsize,
}

impl AnyServer {
    /// `template` must have a `{}`.
    pub fn new(
        template: &str,
        nonce: String,
        login: (String, String),
        methods: Methods,
    ) -> anyhow::Result<Self> {
        anyhow::ensure!(
            template.contains("{}"),
            "the address has no `{{}}`: each case needs a state of its own, and its name goes there"
        );
        Ok(Self { template: template.to_owned(), nonce, login, methods, made: 0.into() })
    }
}

#[async_trait]
impl Target for AnyServer {
    fn is_exact(&self) -> bool {
        false
    }

    async fn fresh(&self) -> anyhow::Result<Place> {
        let number = self.made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("conformance-{}-{number}", self.nonce);
        Ok(Place { address: self.template.replace("{}", &name), methods: self.methods })
    }

    async fn credentials(&self, who: Who, _: &Place) -> anyhow::Result<Option<(String, String)>> {
        Ok((who == Who::Admin).then(|| self.login.clone()))
    }

    async fn look(&self, _: &Place) -> anyhow::Result<Option<Insight>> {
        Ok(None)
    }

    async fn favour(&self, _: &Place, _: &Favour) -> anyhow::Result<bool> {
        Ok(false)
    }
}

/// Follows redirects.
pub(super) fn client() -> anyhow::Result<reqwest::Client> {
    Ok(builder().build()?)
}

/// Shows redirects.
pub(super) fn client_without_redirects() -> anyhow::Result<reqwest::Client> {
    Ok(builder().redirect(reqwest::redirect::Policy::none()).build()?)
}

fn builder() -> reqwest::ClientBuilder {
    // Several crates bring rustls; the first caller chooses for the process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy()
}
