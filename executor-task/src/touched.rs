//! Tells `callback` what an apply touches, while it does. If this process dies, that is what people find.

use std::time::Duration;

use plumbline_core::protocol::{TouchedReport, TouchedResource};
use reqwest::Method;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::callback::Callback;

/// Resources in one report.
const REPORT_MAX: usize = 200;
/// How long the first of a report waits for others.
const GATHER: Duration = Duration::from_millis(200);

/// Where to say it, and the task that passes it on: it ends when the sender is gone and everything is with `callback`, or
/// cannot be.
pub(crate) fn start(callback: Callback) -> (mpsc::UnboundedSender<TouchedResource>, JoinHandle<()>) {
    let (news, received) = mpsc::unbounded_channel();
    (news, tokio::spawn(send(callback, received)))
}

async fn send(callback: Callback, mut received: mpsc::UnboundedReceiver<TouchedResource>) {
    let mut resources = Vec::new();
    while let Some(first) = received.recv().await {
        resources.push(first);
        tokio::time::sleep(GATHER).await;
        while resources.len() < REPORT_MAX
            && let Ok(next) = received.try_recv()
        {
            resources.push(next);
        }
        let report = TouchedReport { resources: std::mem::take(&mut resources) };
        // It helps people after a crash and decides nothing: no reason to fail an apply.
        if let Err(error) = callback.tell(Method::POST, "apply/touched", &report).await {
            tracing::warn!(%error, "what the apply touches cannot be told");
            return;
        }
    }
}
