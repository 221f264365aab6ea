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

/// The sender of what was touched.
pub(crate) struct Touched {
    news: mpsc::UnboundedSender<TouchedResource>,
    sender: JoinHandle<()>,
}

impl Touched {
    pub(crate) fn start(callback: Callback) -> Self {
        let (news, received) = mpsc::unbounded_channel();
        Self { news, sender: tokio::spawn(send(callback, received)) }
    }

    /// Where to say it. All of these must be gone before [`Self::finish`].
    pub(crate) fn news(&self) -> mpsc::UnboundedSender<TouchedResource> {
        self.news.clone()
    }

    /// Waits until everything is with `callback`, or cannot be.
    pub(crate) async fn finish(self) {
        drop(self.news);
        if self.sender.await.is_err() {
            tracing::error!("the sender of touched resources crashed");
        }
    }
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
