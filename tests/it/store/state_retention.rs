//! Old versions go by the rules, with their bodies, and nothing else goes.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use plumbline_core::db::Query as _;
use plumbline_core::ports::BlobError;
use plumbline_core::tfstates::service;
use plumbline_runtime::Function;
use serde_json::{Value, json};
use uuid::Uuid;

use super::hooked_store::{Before, Hooked};
use super::state_client::{Backend, state};
use crate::plane::slug;

const DAY: Duration = Duration::from_secs(86_400);

/// A workspace whose history is kept for ten versions and one day.
struct History(Backend);

impl History {
    async fn start() -> Self {
        let history = Self(Backend::start().await);
        for (key, value) in [("state_versions", 10), ("state_version_days", 1)] {
            assert_eq!(history.set(key, value).await.0, StatusCode::OK);
        }
        history
    }

    async fn set(&self, key: &str, value: i64) -> (StatusCode, Value) {
        let admin = self.0.plane.admin_token().await;
        let path = format!("/api/v1/runtime-config/retention.{key}");
        let (status, _, body) = self
            .0
            .plane
            .call_with("PUT", &path, admin.as_str(), json!({ "value": value }), &[("if-match", "*")])
            .await;
        (status, body)
    }

    /// Writes versions with these serials.
    async fn write(&self, serials: Range<i64>) {
        for serial in serials {
            let body = state(serial, "l", &format!("value-{serial}"));
            assert_eq!(self.0.write(None, &body).await.0, StatusCode::OK);
        }
    }

    /// Moves time and signs the admin in again.
    async fn later(&mut self, by: Duration) {
        self.0.plane.advance(by).await;
        self.0.token = self.0.plane.user(plumbline_core::access::Role::Admin).await;
    }

    async fn sweep(&self) -> usize {
        service::sweep_versions(&self.0.plane.as_function(Function::Reconciler)).await.unwrap()
    }

    async fn serials(&self) -> BTreeSet<i64> {
        self.0.versions().await.iter().map(|version| version["serial"].as_i64().unwrap()).collect()
    }

    /// The rows as they are, with their keys.
    async fn rows(&self, table: &str) -> Vec<(Uuid, String)> {
        let conn = self.0.plane.db().conn().await.unwrap();
        let rows = conn.query(&format!("SELECT id, key FROM {table} ORDER BY id"), &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    async fn has_body(&self, key: &str) -> bool {
        self.0.plane.deps.blobs.head(key).await.unwrap().is_some()
    }

    async fn expirations(&self) -> Vec<Value> {
        let path = format!("audit?workspace_id={}&action=state.expire", self.0.workspace);
        self.0.api("GET", &path).await.1["items"].as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn the_newest_and_the_young_stay_and_the_rest_goes_with_its_bodies() {
    let mut history = History::start().await;
    history.write(1..16).await;
    assert_eq!(history.sweep().await, 0, "all are young");
    let rows = history.rows("state_versions").await;
    history.later(2 * DAY).await;

    assert_eq!(history.sweep().await, 10, "five are marked, five are removed");

    assert_eq!(history.serials().await, (6..16).collect());
    for (n, (id, key)) in rows.iter().enumerate() {
        assert_eq!(history.has_body(key).await, n >= 5, "{n}");
        let (status, _) = history.0.api("GET", &format!("state-versions/{id}")).await;
        assert_eq!(status == StatusCode::OK, n >= 5, "{n}");
    }
    let log = history.expirations().await;
    assert_eq!(log.len(), 1, "once per batch: {log:?}");
    let details = &log[0]["details"];
    assert_eq!((&details["versions"], &details["serial_max"]), (&json!(5), &json!(5)), "{details}");
    assert_eq!(log[0]["user_id"], Value::Null);

    history.write(16..19).await;
    assert_eq!(history.sweep().await, 0, "a workspace is looked at once a day");
    history.later(DAY + Duration::from_secs(60)).await;
    history.write(19..20).await;
    history.sweep().await;
    assert_eq!(history.serials().await, (10..20).collect(), "10 to 15 are among the newest ten");
}

#[tokio::test]
async fn what_a_run_was_planned_on_and_what_a_rollback_names_stay() {
    let mut history = History::start().await;
    history.write(1..4).await;
    let oldest = history.0.versions().await[2]["id"].as_str().unwrap().to_owned();
    let pinned = history.0.versions().await[1]["id"].as_str().unwrap().to_owned();
    let conn = history.0.plane.db().conn().await.unwrap();
    // A plan that waits for its approval.
    let run = "INSERT INTO runs (id, business_unit_id, workspace_id, command, branch, status, base_state_version_id)
        VALUES ($1, $2, $3, 'apply', 'main', 'awaiting_approval', $4)";
    let (id, base): (Uuid, Uuid) = (Uuid::now_v7(), pinned.parse().unwrap());
    conn.execute(run, &[&id, &history.0.unit, &history.0.workspace, &base]).await.unwrap();
    drop(conn);
    history.write(4..12).await;
    let (status, _) = history.0.api("POST", &format!("state-versions/{oldest}/rollback")).await;
    assert_eq!(status, StatusCode::CREATED);
    history.write(13..16).await;
    history.later(2 * DAY).await;

    history.sweep().await;

    let kept = history.serials().await;
    let newest: BTreeSet<i64> = (6..16).collect();
    assert!(
        kept.is_superset(&newest) && kept.contains(&1) && kept.contains(&2) && kept.len() == 12,
        "{kept:?}"
    );

    let conn = history.0.plane.db().conn().await.unwrap();
    let ended = "UPDATE runs SET status = 'cancelled', completed_at = plumbline_now() WHERE id = $1";
    conn.execute(ended, &[&id]).await.unwrap();
    drop(conn);
    history.later(2 * DAY).await;
    history.sweep().await;
    let kept = history.serials().await;
    assert!(kept.contains(&1) && !kept.contains(&2), "the plan is over, the roll-back is not: {kept:?}");
}

#[tokio::test]
async fn nothing_goes_where_everything_is_kept_for_ever_and_ten_are_the_least() {
    let mut history = History::start().await;
    let (status, problem) = history.set("state_versions", 9).await;
    assert_eq!((status, slug(&problem)), (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"), "{problem}");
    assert_eq!(history.set("state_version_days", 0).await.0, StatusCode::OK);
    history.write(1..13).await;
    history.later(400 * DAY).await;
    assert_eq!(history.sweep().await, 0);
    assert_eq!(history.serials().await.len(), 12);
}

#[tokio::test]
async fn many_sweeps_at_once_remove_each_version_once() {
    let mut history = History::start().await;
    history.write(1..31).await;
    history.later(2 * DAY).await;
    let reconciler = history.0.plane.as_function(Function::Reconciler);
    let sweeps = futures::future::join_all((0..8).map(|_| service::sweep_versions(&reconciler))).await;
    let touched: usize = sweeps.into_iter().map(Result::unwrap).sum();
    assert_eq!(touched, 40, "20 marked, 20 removed");
    assert_eq!(history.serials().await, (21..31).collect());
    assert_eq!(history.expirations().await.len(), 1);
}

/// Removes nothing while it is told to.
#[derive(Debug)]
struct Stubborn {
    refuses: AtomicBool,
}

#[async_trait]
impl Before for Stubborn {
    async fn delete(&self) -> Result<(), BlobError> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(BlobError::Unavailable("not now".into()));
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_removal_that_broke_off_goes_on_at_the_next_sweep_and_nobody_sees_what_is_half_gone() {
    let mut history = History::start().await;
    let stubborn = Stubborn { refuses: AtomicBool::new(true) };
    let store = Arc::new(Hooked { store: Arc::clone(&history.0.plane.deps.blobs), before: stubborn });
    history.0.plane.deps.blobs = store.clone();
    history.write(1..13).await;
    let rows = history.rows("state_versions").await;
    history.later(2 * DAY).await;

    assert_eq!(history.sweep().await, 2, "marked, and neither body nor row is gone");
    assert_eq!(history.rows("state_versions").await.len(), 12);
    assert_eq!(history.serials().await, (3..13).collect());
    let (id, key) = &rows[0];
    for (method, path) in [("GET", ""), ("GET", "/download"), ("GET", "/diff"), ("POST", "/rollback")] {
        let (status, problem) = history.0.api(method, &format!("state-versions/{id}{path}")).await;
        assert_eq!((status, slug(&problem)), (StatusCode::NOT_FOUND, "not-found"), "{path}: {problem}");
    }
    // As after a kill between the body and its row.
    history.0.plane.deps.blobs.get(key).await.unwrap();
    store.store.delete(key).await.unwrap();

    store.before.refuses.store(false, Ordering::SeqCst);
    assert_eq!(history.sweep().await, 2);
    assert_eq!(history.rows("state_versions").await.len(), 10);
    for (_, key) in &rows[..2] {
        assert!(!history.has_body(key).await);
    }
    assert_eq!(history.expirations().await.len(), 1);
}

#[tokio::test]
async fn quarantined_states_go_by_the_age_of_the_decision_and_a_promoted_body_stays_with_its_version() {
    let mut history = History::start().await;
    history.write(1..2).await;
    for value in ["open", "discarded", "promoted"] {
        let late = history.0.write(Some("never-held"), &state(9, "l", value)).await;
        assert_eq!(late.0, StatusCode::CONFLICT);
    }
    let rows = history.rows("quarantined_states").await;
    for (decision, (id, _)) in ["discard", "promote"].into_iter().zip(&rows[1..]) {
        let (status, _) = history.0.api("POST", &format!("quarantined-states/{id}/{decision}")).await;
        assert_eq!(status, StatusCode::OK);
    }
    history.later(2 * DAY).await;

    history.sweep().await;

    let left = history.rows("quarantined_states").await;
    assert_eq!(left, rows[..1], "what waits for a person waits for ever");
    let bodies = [history.has_body(&rows[0].1).await, history.has_body(&rows[1].1).await];
    assert_eq!(bodies, [true, false]);
    assert!(history.has_body(&rows[2].1).await, "it is a version now");
    assert_eq!(history.0.read().await.0, StatusCode::OK);
    // The same late body once more is kept anew, with bytes of its own.
    assert_eq!(
        history.0.write(Some("never-held"), &state(9, "l", "discarded")).await.0,
        StatusCode::CONFLICT
    );
    let again = history.rows("quarantined_states").await;
    assert_eq!(again.len(), 2);
    assert!(history.has_body(&again[1].1).await);
}

#[tokio::test]
async fn uploads_that_were_settled_long_ago_are_forgotten_and_what_was_abandoned_leaves_no_bytes() {
    let mut history = History::start().await;
    history.write(1..2).await;
    let conn = history.0.plane.db().conn().await.unwrap();
    let upload = "INSERT INTO state_uploads (id, business_unit_id, workspace_id, generation, lock_id, key, serial, lineage,
            md5, sha256, size_bytes, status, url_expires_at)
        VALUES ($1, $2, $3, 1, 'l', $4, 2, 'l', decode(repeat('00', 16), 'hex'), decode(repeat('00', 32), 'hex'), 2, $5,
            plumbline_now())";
    for status in ["committed", "abandoned", "pending"] {
        let key = format!("states/{status}.tfstate");
        history.0.plane.deps.blobs.put(&key, Bytes::from_static(b"{}"), "application/json").await.unwrap();
        let (unit, workspace) = (&history.0.unit, &history.0.workspace);
        conn.execute(upload, &[&Uuid::now_v7(), unit, workspace, &key, &status]).await.unwrap();
    }
    drop(conn);
    assert_eq!(history.sweep().await, 0, "a commit may still be sent again");
    history.later(31 * DAY).await;
    assert_eq!(history.sweep().await, 2);
    let left = history.rows("state_uploads").await;
    assert_eq!(left.len(), 1);
    for (status, stays) in [("committed", true), ("abandoned", false), ("pending", true)] {
        assert_eq!(history.has_body(&format!("states/{status}.tfstate")).await, stays, "{status}");
    }
}
