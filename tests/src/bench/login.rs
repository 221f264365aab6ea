//! Whether a sign-in, which hashes a password for a quarter of a second, holds up anybody else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::harness::{Report, median, quantile};
use crate::server::Server;

const ROUNDS: usize = 5;
/// Below what one address may try in a minute.
const LOGINS: usize = 8;
const BETWEEN: Duration = Duration::from_millis(4);
const QUIET_REQUESTS: usize = 300;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&[]).await?;
    let (mut quiet, mut busy) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        server.execute("DELETE FROM login_attempts").await?;
        let stop = AtomicBool::new(false);
        quiet.push(quantile(requests(&server, &stop, QUIET_REQUESTS).await?, 0.99));
        let (waits, signed_in) =
            tokio::join!(requests(&server, &stop, usize::MAX), sign_in_often(&server, &stop));
        signed_in?;
        busy.push(quantile(waits?, 0.99));
    }
    let (quiet, busy) = (median(quiet), median(busy));
    report.at_most(
        "a login in progress delays another request",
        "ms at the 99th percentile",
        5.0,
        (busy - quiet).max(0.0),
        format!("{busy:.1} ms; {quiet:.1} ms without"),
    );
    Ok(())
}

async fn sign_in_often(server: &Server, stop: &AtomicBool) -> anyhow::Result<()> {
    let url = format!("{}/api/v1/auth/token", server.facts.url);
    let password = std::fs::read_to_string(&server.facts.password_file)?;
    for _ in 0..LOGINS {
        let body = json!({ "email": server.facts.admin_email, "password": password.trim() });
        server.http.post(&url).json(&body).send().await?.error_for_status()?;
    }
    stop.store(true, Ordering::SeqCst);
    Ok(())
}

/// Milliseconds that requests took, one after the other.
async fn requests(server: &Server, stop: &AtomicBool, most: usize) -> anyhow::Result<Vec<f64>> {
    let mut waits = Vec::new();
    while waits.len() < most && !stop.load(Ordering::SeqCst) {
        let began = Instant::now();
        server.api(Method::GET, "/api/v1/workspaces", None).await?;
        waits.push(began.elapsed().as_secs_f64() * 1000.0);
        tokio::time::sleep(BETWEEN).await;
    }
    Ok(waits)
}
