//! The matrix of real clients against any server: a table of results, and a failure if one case failed.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use async_trait::async_trait;
use clap::{Parser, ValueEnum};
use plumbline_tests::clients::{
    AnyServer, Favour, Insight, Methods, Place, Target, Who, cases, find, run_all,
};
use serde_json::{Value, json};

/// Runs terraform, and tofu where it is found, against a state backend.
#[derive(Debug, Parser)]
struct Options {
    /// Address of a state with `{}` where its name goes: every case takes a name of its own. Without `{}` it is the address
    /// of a Plumbline, where every case makes a workspace of its own.
    url: String,
    /// User name of Basic authentication; `unit/<slug>` names a business unit of a Plumbline.
    #[arg(long, env = "CONFORMANCE_USER", default_value = "terraform")]
    user: String,
    /// Password of Basic authentication.
    #[arg(long, env = "CONFORMANCE_TOKEN", hide_env_values = true, default_value = "")]
    token: String,
    /// How clients are told to write and lock.
    #[arg(long, env = "CONFORMANCE_METHODS", value_enum, default_value = "usual")]
    methods: MethodsWord,
    /// Only cases whose name contains this.
    #[arg(long, env = "CONFORMANCE_CASES", default_value = "")]
    cases: String,
    /// How many cases run at a time.
    #[arg(long, default_value_t = 4)]
    at_once: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MethodsWord {
    /// POST, LOCK and UNLOCK.
    Usual,
    /// PUT, and POST and DELETE on the state's `/lock`.
    Twins,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let methods = match options.methods {
        MethodsWord::Usual => Methods::USUAL,
        MethodsWord::Twins => Methods::TWINS,
    };
    let login = (options.user.clone(), options.token.clone());
    let target: Arc<dyn Target> = if options.url.contains("{}") {
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        Arc::new(AnyServer::new(&options.url, nonce, login, methods)?)
    } else {
        Arc::new(Plumbline::new(&options.url, login, methods)?)
    };
    let mut out = std::io::stdout();
    let (mut counts, mut failed) = (Vec::new(), 0);
    for name in ["terraform", "tofu"] {
        let Some(program) = find(name).await else {
            writeln!(out, "SKIP: {name} was not found on the PATH")?;
            counts.push(format!("0 with {name} (not found)"));
            continue;
        };
        let mut cases = cases::all();
        cases.retain(|case| case.name.contains(&options.cases));
        ensure!(!cases.is_empty(), "no case has `{}` in its name", options.cases);
        let report = run_all(&program, &target, cases, options.at_once).await;
        write!(out, "{report}")?;
        failed += report.failed().len();
        counts.push(format!("{} cases with {name} {}", report.held(), program.version));
    }
    writeln!(out, "matrix: {}; {failed} failed", counts.join(", "))?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A Plumbline that runs somewhere: it has no state without a workspace, so every case makes one.
struct Plumbline {
    url: String,
    login: (String, String),
    methods: Methods,
    http: reqwest::Client,
}

impl Plumbline {
    fn new(url: &str, login: (String, String), methods: Methods) -> anyhow::Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().build()?;
        Ok(Self { url: url.trim_end_matches('/').to_owned(), login, methods, http })
    }
}

#[async_trait]
impl Target for Plumbline {
    fn is_exact(&self) -> bool {
        false
    }

    async fn fresh(&self) -> anyhow::Result<Place> {
        let name = format!("conformance-{}", uuid::Uuid::new_v4().simple());
        let workspace = json!({
            "name": name, "environment": "conformance", "repo_url": "https://git.example.com/conformance.git",
            "tf_working_dir": name, "state_writes": "runs_and_people",
        });
        let mut request =
            self.http.post(format!("{}/api/v1/workspaces", self.url)).bearer_auth(&self.login.1);
        if let Some(unit) = self.login.0.strip_prefix("unit/") {
            request = request.header("x-business-unit", unit);
        }
        let answer = request.json(&workspace).send().await?;
        let status = answer.status();
        let body: Value = answer.json().await.unwrap_or_default();
        ensure!(status.is_success(), "a workspace cannot be made: {status} {body}");
        let id = body["id"].as_str().context("its id")?;
        Ok(Place { address: format!("{}/api/v1/state/{id}", self.url), methods: self.methods })
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
