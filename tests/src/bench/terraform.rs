//! `terraform apply` against us and against a backend that keeps the state in memory.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{OriginalUri, State};
use axum::http::{Method, StatusCode};
use axum::routing::any;
use tokio::process::Command;

use crate::harness::{Report, median};
use crate::server::Server;

/// Resources, and rounds: a short apply is a matter of a few milliseconds, which one slow sync of the disk outweighs.
const APPLIES: [(usize, usize); 3] = [(1, 31), (50, 21), (500, 9)];

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let budget = "≤ 1.1 × an in-memory HTTP backend";
    let Some(program) = find_program() else {
        report.not_measured("terraform apply", budget, "SKIP: no terraform on PATH");
        return Ok(());
    };
    let server = Server::start(&[]).await?;
    let memory = serve_memory().await?;
    for (resources, rounds) in APPLIES {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let address = format!("{}/api/v1/state/{}", server.facts.url, server.workspace().await?);
            ours.push(apply(&program, &address, &server.token, resources).await?);
            let address = format!("{memory}/{resources}-{round}");
            theirs.push(apply(&program, &address, "none", resources).await?);
        }
        let (ours, theirs) = (median(ours), median(theirs));
        report.at_most(
            &format!("terraform apply, {resources} resources"),
            "× an in-memory HTTP backend",
            1.1,
            ours / theirs,
            format!("{ours:.2} s; in memory {theirs:.2} s"),
        );
    }
    Ok(())
}

fn find_program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PLUMBLINE_TERRAFORM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    ["terraform", "tofu"]
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |directory| directory.join(name)))
        .find(|program| program.is_file())
}

/// Seconds that an apply of new resources takes. The initialisation before it is not counted.
async fn apply(program: &Path, address: &str, token: &str, resources: usize) -> anyhow::Result<f64> {
    let directory = tempfile::tempdir()?;
    let mut text = String::from("terraform {\n  backend \"http\" {}\n}\n");
    for n in 0..resources {
        writeln!(text, "resource \"terraform_data\" \"r{n}\" {{\n  input = \"value {n}\"\n}}")?;
    }
    std::fs::write(directory.path().join("main.tf"), text)?;
    terraform(program, directory.path(), address, token, &["init", "-input=false"]).await?;
    let began = Instant::now();
    terraform(program, directory.path(), address, token, &["apply", "-auto-approve", "-input=false"]).await?;
    Ok(began.elapsed().as_secs_f64())
}

async fn terraform(
    program: &Path,
    directory: &Path,
    address: &str,
    token: &str,
    arguments: &[&str],
) -> anyhow::Result<()> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env("TF_HTTP_ADDRESS", address)
        .env("TF_HTTP_LOCK_ADDRESS", format!("{address}/lock"))
        .env("TF_HTTP_UNLOCK_ADDRESS", format!("{address}/lock"))
        .env("TF_HTTP_LOCK_METHOD", "POST")
        .env("TF_HTTP_UNLOCK_METHOD", "DELETE")
        .env("TF_HTTP_UPDATE_METHOD", "PUT")
        .env("TF_HTTP_USERNAME", "terraform")
        .env("TF_HTTP_PASSWORD", token)
        .env("CHECKPOINT_DISABLE", "1")
        .output()
        .await
        .context("terraform cannot be run")?;
    ensure!(output.status.success(), "terraform: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// States by path.
type Memory = Arc<Mutex<HashMap<String, Bytes>>>;

/// The least that Terraform needs: locks are always granted.
async fn serve_memory() -> anyhow::Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let router = Router::new()
        .fallback(any(remember))
        .with_state(Memory::default())
        .layer(axum::extract::DefaultBodyLimit::disable());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}

async fn remember(
    State(memory): State<Memory>,
    method: Method,
    OriginalUri(uri): OriginalUri,
    body: Bytes,
) -> (StatusCode, Bytes) {
    let path = uri.path().to_owned();
    if path.ends_with("/lock") {
        return (StatusCode::OK, Bytes::new());
    }
    let mut memory = memory.lock().expect("no holder panics");
    match method {
        Method::PUT => {
            memory.insert(path, body);
            (StatusCode::OK, Bytes::new())
        }
        _ => match memory.get(&path) {
            Some(state) => (StatusCode::OK, state.clone()),
            None => (StatusCode::NO_CONTENT, Bytes::new()),
        },
    }
}
