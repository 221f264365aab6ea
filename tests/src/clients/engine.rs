//! Runs one case.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::case::{Address, Call, Case, Exit, Head, Request, Step};
use super::checks;
use super::program::{Ended, Program, Running, Start};
use super::proxy::{Bystander, Proxy, Shape};
use super::report::Outcome;
use super::target::{Favour, Insight, Methods, Place, Target, Who};
use super::trace::{self, Strictness};

/// How long a condition may take that a case waits for.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Refused by every machine: a port that only the superuser could listen on, and does not.
const NOBODY: &str = "http://127.0.0.1:1";

/// Runs a case on a state of its own. An error is what the matrix found.
pub async fn run(program: &Program, target: &Arc<dyn Target>, case: &Case) -> anyhow::Result<Outcome> {
    let mut place = target.fresh().await?;
    let own_methods = case.methods.is_some();
    place.methods = case.methods.unwrap_or(place.methods);
    let Some(admin) = target.credentials(Who::Admin, &place).await? else { bail!("the target has no admin") };
    let own = Arc::new(Own::new(place.clone(), admin)?);
    let mut stage = Stage {
        program,
        target,
        case,
        own,
        usual_words: !own_methods,
        clients: BTreeMap::new(),
        started: None,
        lineage_may_change: false,
    };
    for (number, step) in case.steps.iter().enumerate() {
        let done = Box::pin(stage.step(step)).await;
        match done.with_context(|| format!("step {}: {}", number + 1, describe(step)))? {
            Outcome::Held => {}
            other => return Ok(other),
        }
    }
    stage.check_end().await.context("at the end")?;
    Ok(Outcome::Held)
}

fn describe(step: &Step) -> String {
    match step {
        Step::Run(call) | Step::Start(call) => call.arguments.join(" "),
        Step::Finish => "the client that was held".to_owned(),
        Step::Ask(request, _) => format!("{request:?}"),
        Step::Favour(favour) => format!("{favour:?}"),
        Step::Write(file, _) | Step::Rewrite(_, file, ..) => format!("writing {file}"),
    }
}

struct Client {
    directory: tempfile::TempDir,
    proxy: Proxy,
}

struct Stage<'a> {
    program: &'a Program,
    target: &'a Arc<dyn Target>,
    case: &'a Case,
    own: Arc<Own>,
    usual_words: bool,
    clients: BTreeMap<usize, Client>,
    started: Option<(Running, &'a Call)>,
    lineage_may_change: bool,
}

impl<'a> Stage<'a> {
    async fn step(&mut self, step: &'a Step) -> anyhow::Result<Outcome> {
        match step {
            Step::Run(call) => {
                let Some(running) = self.start(call).await? else {
                    return Ok(Outcome::Skipped("the server has no such user"));
                };
                if let Some(file) = call.interrupted_at {
                    until_there(&self.clients[&call.client].directory.path().join(file)).await?;
                    kill(Pid::from_raw(running.id()?), Signal::SIGINT)?;
                }
                self.end(running, call).await?;
            }
            Step::Start(call) => {
                let Some(running) = self.start(call).await? else {
                    return Ok(Outcome::Skipped("the server has no such user"));
                };
                let held = self.clients[&call.client].proxy.until_held();
                tokio::time::timeout(WAIT_MAX, held).await.context("no request was held")?;
                self.started = Some((running, call));
            }
            Step::Finish => {
                let (running, call) = self.started.take().context("nothing was started")?;
                self.clients[&call.client].proxy.let_go();
                self.end(running, call).await?;
            }
            Step::Ask(request, expected) => {
                let status = self.own.ask(request).await?;
                let alike = !self.target.is_exact() && (status < 300) == (*expected < 300) && status < 500;
                ensure!(status == *expected || alike, "{status} instead of {expected}");
            }
            Step::Favour(favour) => {
                self.lineage_may_change |= matches!(favour, Favour::AcceptNextLineage);
                if !self.target.favour(&self.own.place, favour).await? {
                    return Ok(Outcome::Skipped("the server cannot be prepared for it"));
                }
            }
            Step::Write(file, text) => {
                let directory = self.client(0).await?.directory.path().to_owned();
                let file = directory.join(file);
                std::fs::create_dir_all(file.parent().context("below the directory")?)?;
                std::fs::write(file, text)?;
            }
            Step::Rewrite(from, to, more, lineage) => {
                let directory = self.client(0).await?.directory.path().to_owned();
                let mut state: Value = serde_json::from_slice(&std::fs::read(directory.join(from))?)?;
                let serial = state["serial"].as_i64().context("a serial")?;
                state["serial"] = json!(serial + more);
                if let Some(lineage) = lineage {
                    state["lineage"] = json!(lineage);
                }
                std::fs::write(directory.join(to), state.to_string())?;
            }
        }
        Ok(Outcome::Held)
    }

    async fn client(&mut self, number: usize) -> anyhow::Result<&Client> {
        if !self.clients.contains_key(&number) {
            let directory = tempfile::Builder::new().prefix("plumbline-matrix-").tempdir()?;
            std::fs::write(directory.path().join("main.tf"), &self.case.module)?;
            let shape =
                Shape { path: self.path(), methods: self.own.place.methods, usual_words: self.usual_words };
            let proxy = Proxy::before(self.own.origin(), shape, Arc::clone(&self.own) as _).await?;
            self.clients.insert(number, Client { directory, proxy });
        }
        Ok(&self.clients[&number])
    }

    /// The state's path as the client's settings have it.
    fn path(&self) -> String {
        let path = self.own.place.address.strip_prefix(self.own.origin()).unwrap_or_default();
        match self.case.address {
            Address::Plain | Address::Nobody => path.to_owned(),
            Address::Slash => format!("{path}/"),
            Address::Doubled => path.replace('/', "//"),
            Address::UpperCase => path.to_uppercase(),
        }
    }

    /// `None` if the server has no such user.
    async fn start(&mut self, call: &Call) -> anyhow::Result<Option<Running>> {
        let who = call.who.unwrap_or(self.case.who);
        let Some((user, password)) = self.target.credentials(who, &self.own.place).await? else {
            return Ok(None);
        };
        let (path, methods, is_nobody) =
            (self.path(), self.own.place.methods, self.case.address == Address::Nobody);
        let program = self.program;
        let client = self.client(call.client).await?;
        let origin = if is_nobody { NOBODY } else { &client.proxy.origin };
        let lock = [origin, &path, methods.lock_suffix].concat();
        let mut environment = vec![
            ("TF_HTTP_ADDRESS", [origin, &path].concat()),
            ("TF_HTTP_LOCK_ADDRESS", lock.clone()),
            ("TF_HTTP_UNLOCK_ADDRESS", lock),
            ("TF_HTTP_UPDATE_METHOD", methods.update.to_owned()),
            ("TF_HTTP_LOCK_METHOD", methods.lock.to_owned()),
            ("TF_HTTP_UNLOCK_METHOD", methods.unlock.to_owned()),
            ("TF_HTTP_USERNAME", user.clone()),
            ("TF_HTTP_PASSWORD", password.clone()),
            ("TF_HTTP_RETRY_WAIT_MIN", "1".to_owned()),
            ("TF_HTTP_RETRY_WAIT_MAX", "1".to_owned()),
            // For modules that read another state.
            ("TF_VAR_address", [origin, &path].concat()),
            ("TF_VAR_username", user),
            ("TF_VAR_password", password),
        ];
        environment.extend(call.environment.iter().map(|(name, value)| (*name, value.clone())));
        client.proxy.begin(&call.faults);
        let directory = client.directory.path();
        let running = program.start(Start { arguments: &call.arguments, directory, environment })?;
        client.proxy.watch_over(running.id()?);
        Ok(Some(running))
    }

    async fn end(&mut self, running: Running, call: &Call) -> anyhow::Result<()> {
        let ended = running.end().await?;
        let client = &self.clients[&call.client];
        let strictness = if self.target.is_exact() { Strictness::Exact } else { Strictness::AsTheClient };
        let recorded = client.proxy.recorded()?;
        trace::compare(&call.trace, &recorded, strictness)
            .with_context(|| format!("it printed: {}", shortened(&ended.text)))?;
        check_output(call, &ended)?;
        let errored = client.directory.path().join("errored.tfstate");
        ensure!(errored.exists() == call.keeps_state, "errored.tfstate: {}", errored.exists());
        if call.keeps_state {
            let kept: Value = serde_json::from_slice(&std::fs::read(&errored)?)?;
            ensure!(kept["serial"].is_i64(), "errored.tfstate is a state");
            std::fs::rename(&errored, client.directory.path().join("kept.tfstate"))?;
        }
        if let Some(file) = call.into {
            std::fs::write(client.directory.path().join(file), &ended.stdout)?;
        }
        Ok(())
    }

    async fn check_end(&self) -> anyhow::Result<()> {
        let (status, state) = self.own.read().await?;
        let serial = state.as_ref().and_then(|state| state["serial"].as_i64());
        match self.case.head {
            Head::None => ensure!(serial.is_none(), "there is a state ({status})"),
            Head::Serial(expected) => {
                ensure!(serial == Some(expected), "serial {serial:?}, not {expected} ({status})")
            }
            Head::Any => {}
        }
        match self.target.look(&self.own.place).await? {
            Some(insight) => self.check_insight(&insight, serial),
            // A lock that can be had was free.
            None if self.case.locked_by.is_none() => {
                let status = self.own.ask(&Request::Lock("the-matrix-looks")).await?;
                ensure!(status == 200, "the lock is not free: {status}");
                let status = self.own.ask(&Request::Unlock("the-matrix-looks")).await?;
                ensure!(status == 200, "the lock cannot be given back: {status}");
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn check_insight(&self, insight: &Insight, serial: Option<i64>) -> anyhow::Result<()> {
        let case = self.case;
        ensure!(
            serial.is_none() || insight.serials.last() == serial.as_ref(),
            "a GET and {insight:?} differ"
        );
        if let Some(versions) = case.versions {
            ensure!(insight.serials.len() == versions, "{versions} versions: {insight:?}");
        }
        ensure!(insight.quarantined == case.quarantined, "{} in quarantine: {insight:?}", case.quarantined);
        ensure!(insight.lock_id.as_deref() == case.locked_by, "locked by {:?}: {insight:?}", case.locked_by);
        if !self.lineage_may_change {
            ensure!(insight.serials.is_sorted_by(|a, b| a < b), "serials rise: {insight:?}");
            ensure!(
                insight.lineages.iter().all(|one| *one == insight.lineages[0]),
                "one lineage: {insight:?}"
            );
        }
        if let Some(audit) = case.audit {
            let expected: Vec<&str> = audit.split_whitespace().collect();
            let found: Vec<&str> =
                insight.audit.iter().map(String::as_str).filter(|action| *action != "state.read").collect();
            ensure!(found == expected, "audit {found:?}, not {expected:?}");
        }
        Ok(())
    }
}

fn check_output(call: &Call, ended: &Ended) -> anyhow::Result<()> {
    let expected = match call.exit {
        Exit::Code(code) => Some(code),
        Exit::Killed => None,
    };
    ensure!(
        ended.code == expected,
        "exit code {:?}, not {expected:?}: {}",
        ended.code,
        shortened(&ended.text)
    );
    for text in &call.says {
        ensure!(ended.text.contains(text), "it does not say `{text}`: {}", shortened(&ended.text));
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    const LETTERS_MAX: usize = 1500;
    let length = text.chars().count();
    text.chars().skip(length.saturating_sub(LETTERS_MAX)).collect()
}

async fn until_there(file: &Path) -> anyhow::Result<()> {
    let deadline = Instant::now() + WAIT_MAX;
    while !file.exists() {
        ensure!(Instant::now() < deadline, "{} did not come", file.display());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Requests around the proxy, as an admin.
struct Own {
    place: Place,
    login: (String, String),
    http: reqwest::Client,
}

impl Own {
    fn new(place: Place, login: (String, String)) -> anyhow::Result<Self> {
        let http = super::target::client()?;
        Ok(Self { place, login, http })
    }

    /// Scheme, host and port.
    fn origin(&self) -> &str {
        let address = &self.place.address;
        let host = address.find("://").map_or(0, |at| at + 3);
        let end = address[host..].find('/').map_or(address.len(), |at| host + at);
        &address[..end]
    }

    async fn read(&self) -> anyhow::Result<(u16, Option<Value>)> {
        let (status, body) = self.send("GET", "", "", None).await?;
        Ok((status, serde_json::from_slice(&body).ok().filter(|_| status == 200)))
    }

    async fn send(
        &self,
        method: &str,
        suffix: &str,
        query: &str,
        body: Option<String>,
    ) -> anyhow::Result<(u16, bytes::Bytes)> {
        let url = [&self.place.address, suffix, query].concat();
        let mut request =
            self.http.request(method.parse()?, url).basic_auth(&self.login.0, Some(&self.login.1));
        if let Some(body) = body {
            request = request.header("content-type", "application/json");
            request = request.header("content-md5", checks::digest(body.as_bytes())).body(body);
        }
        let answer = request.send().await?;
        Ok((answer.status().as_u16(), answer.bytes().await?))
    }
}

#[async_trait::async_trait]
impl Bystander for Own {
    async fn ask(&self, request: &Request) -> anyhow::Result<u16> {
        let Methods { update, lock, unlock, lock_suffix } = self.place.methods;
        let sent = match request {
            Request::Lock(id) => self.send(lock, lock_suffix, "", Some(lock_info(id))).await,
            Request::Unlock(id) => self.send(unlock, lock_suffix, "", Some(lock_info(id))).await,
            Request::ForceUnlock => self.send(unlock, lock_suffix, "", None).await,
            Request::Read => self.send("GET", "", "", None).await,
            Request::Write(serial, id) => {
                let lineage = match self.read().await? {
                    (_, Some(state)) => state["lineage"].as_str().context("a lineage")?.to_owned(),
                    (_, None) => "00000000-0000-4000-8000-000000000001".to_owned(),
                };
                let state = json!({ "version": 4, "terraform_version": "1.11.4", "serial": serial,
                                    "lineage": lineage, "outputs": {}, "resources": [] });
                let query = id.map(|id| format!("?ID={id}")).unwrap_or_default();
                self.send(update, "", &query, Some(state.to_string())).await
            }
        };
        Ok(sent?.0)
    }
}

fn lock_info(id: &str) -> String {
    json!({ "ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": "somebody@elsewhere", "Version": "1.11.4",
            "Created": "2026-01-01T00:00:00Z", "Path": "" })
    .to_string()
}
