//! A control plane under a schedule: two tenants, their workspaces, real worker and reconciler, executors in hand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::limits::Limits;
use plumbline_runtime::Function;
use serde_json::{Value, json};
use uuid::Uuid;

use super::actors::{Actor, Next, SimLauncher};
use super::history::History;
use super::operations::{Answer, Operation};
use crate::faults::stage::NoShortTasks;
use crate::plane::TestPlane;

/// Executors of one unit at once.
pub const CAP: i32 = 2;
const UNITS: [&str; 2] = ["default", "other-unit"];
const WORKSPACES_PER_UNIT: usize = 2;
/// Operations that happen at once.
const AT_ONCE: usize = 6;
const STEPS_MAX: usize = 16;
const SETTLE_MAX: usize = 120;
/// Shorter than what the lease sweep takes for an outage.
const TICK: Duration = Duration::from_secs(45);

type Shared<'p> = Arc<tokio::sync::Mutex<Actor<'p>>>;

/// The whole.
pub struct World<'p> {
    pub plane: &'p TestPlane,
    pub launcher: SimLauncher,
    /// Workspaces, each with the token of an admin of its unit.
    workspaces: Vec<(String, String)>,
    actors: Mutex<Vec<Shared<'p>>>,
    moment: AtomicU64,
    pub history: Mutex<History>,
    told: Mutex<BTreeSet<(&'static str, Uuid)>>,
}

/// Limits in which no wall clock passes: only a kill may lose an apply.
pub fn limits() -> Limits {
    let month = Duration::from_secs(30 * 24 * 3600);
    Limits {
        bcrypt_cost: 4,
        launches_per_second: 1e6,
        unit_executors_max: CAP,
        plan_wall_clock: month,
        apply_wall_clock: month,
        plan_age: month,
        ..Limits::default()
    }
}

impl<'p> World<'p> {
    pub async fn new(plane: &'p TestPlane) -> Self {
        const JOURNAL: &str = "
            CREATE TABLE fault_journal (at bigserial, unit uuid, class text, running integer);
            CREATE FUNCTION fault_journal() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
            BEGIN
                INSERT INTO fault_journal (unit, class, running) VALUES (NEW.business_unit_id, NEW.class, NEW.running);
                RETURN NEW;
            END $$;
            CREATE TRIGGER fault_journal AFTER UPDATE ON queue_units FOR EACH ROW EXECUTE FUNCTION fault_journal()";
        plane.db().conn().await.unwrap().batch(JOURNAL).await.unwrap();
        plane.admin_token().await;
        let mut workspaces = Vec::new();
        for slug in UNITS {
            let token = plane.member(plane.unit(slug).await, Role::Admin).await;
            for n in 0..WORKSPACES_PER_UNIT {
                let body = json!({ "name": format!("net-{n}"), "environment": "dev",
                                   "repo_url": format!("https://git.example.com/{slug}-{n}.git") });
                let (status, _, made) = plane.call("POST", "/api/v1/workspaces", token.as_str(), body).await;
                assert_eq!(status, StatusCode::CREATED, "{made}");
                workspaces.push((made["id"].as_str().unwrap().to_owned(), token.clone()));
            }
        }
        Self {
            plane,
            launcher: SimLauncher::default(),
            workspaces,
            actors: Mutex::default(),
            moment: AtomicU64::new(0),
            history: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Runs the whole schedule, lets everything settle, and says what happened.
    pub async fn run(self, operations: &[Operation]) -> History {
        for batch in operations.chunks(AT_ONCE) {
            join_all(batch.iter().map(|operation| self.apply(*operation))).await;
            self.adopt();
        }
        self.look_for_overlooked().await;
        self.settle().await;
        super::witness::complete(&self).await;
        self.history.into_inner().unwrap()
    }

    /// The next moment of the one order of events.
    pub fn tick(&self) -> u64 {
        self.moment.fetch_add(1, Ordering::SeqCst)
    }

    pub fn note(&self, write: impl FnOnce(&mut History)) {
        write(&mut self.history.lock().unwrap());
    }

    /// Somebody was told that it is done. A repeated call may be told so again.
    pub fn told_once(&self, what: &'static str, subject: Uuid, status: StatusCode) {
        if status.is_success() && self.told.lock().unwrap().insert((what, subject)) {
            self.note(|history| *history.told.entry(what.to_owned()).or_default() += 1);
        }
    }

    /// A token of each unit.
    pub fn tokens(&self) -> Vec<&str> {
        self.workspaces.iter().step_by(WORKSPACES_PER_UNIT).map(|(_, token)| token.as_str()).collect()
    }

    fn adopt(&self) {
        let fresh = self.launcher.take_fresh().into_iter();
        self.actors.lock().unwrap().extend(fresh.map(|actor| Arc::new(tokio::sync::Mutex::new(actor))));
    }

    async fn living(&self) -> Vec<Shared<'p>> {
        let all = self.actors.lock().unwrap().clone();
        let mut living = Vec::new();
        for actor in all {
            // Whoever is in the middle of a step lives.
            if actor.try_lock().is_ok_and(|actor| actor.next == Next::Nothing) {
                continue;
            }
            living.push(actor);
        }
        living
    }

    async fn pick(&self, pick: u32) -> Option<Shared<'p>> {
        let living = self.living().await;
        let index = (pick as usize).checked_rem(living.len())?;
        living.into_iter().nth(index)
    }

    async fn apply(&self, operation: Operation) {
        match operation {
            Operation::Trigger { pick, mutates } => self.trigger(pick, mutates).await,
            Operation::Approve { pick } => {
                self.decide(pick, Some("awaiting_approval"), "approvals", "approve", "run.approve").await;
            }
            Operation::Reject { pick } => {
                self.decide(pick, Some("awaiting_approval"), "approvals", "reject", "run.reject").await;
            }
            Operation::Cancel { pick } => self.decide(pick, None, "runs", "cancel", "run.cancel").await,
            Operation::Unblock { pick } => {
                let (workspace, token) = &self.workspaces[pick as usize % self.workspaces.len()];
                let path = format!("/api/v1/workspaces/{workspace}/unblock");
                self.post(&path, token, json!({ "note": "looked at it" })).await;
            }
            Operation::Wake { times } => {
                join_all((0..times).map(|_| self.work())).await;
            }
            Operation::Sweep { times } => {
                join_all((0..times).map(|_| self.sweep())).await;
            }
            Operation::Advance { seconds } => self.plane.advance(Duration::from_secs(seconds)).await,
            Operation::Beat => {
                for actor in self.living().await {
                    self.beat(&mut *actor.lock().await).await;
                }
            }
            Operation::Step { pick, answer } => {
                if let Some(actor) = self.pick(pick).await {
                    self.step(&mut *actor.lock().await, answer).await;
                }
            }
            Operation::SwapPlan { pick } => {
                if let Some(actor) = self.pick(pick).await {
                    self.swap_plan(&mut *actor.lock().await).await;
                }
            }
            Operation::Fail { pick, is_transient } => {
                if let Some(actor) = self.pick(pick).await {
                    self.fail(&mut *actor.lock().await, is_transient).await;
                }
            }
            Operation::Kill { pick } => {
                if let Some(actor) = self.pick(pick).await {
                    self.kill(&mut *actor.lock().await);
                }
            }
        }
    }

    async fn post(&self, path: &str, token: &str, body: Value) -> (StatusCode, Value) {
        let (status, _, answer) = self.plane.call("POST", path, token, body).await;
        assert!(!status.is_server_error(), "{path}: {status} {answer}");
        (status, answer)
    }

    async fn trigger(&self, pick: u32, mutates: bool) {
        let (workspace, token) = &self.workspaces[pick as usize % self.workspaces.len()];
        let command = if mutates { "apply" } else { "plan" };
        let body = json!({ "workspace_id": workspace, "command": command });
        let (status, run) = self.post("/api/v1/runs", token, body).await;
        if status.is_success() {
            self.told_once("run.trigger", run["id"].as_str().unwrap().parse().unwrap(), status);
        }
    }

    /// A person's word about one of the newest runs.
    async fn decide(&self, pick: u32, status: Option<&str>, path: &str, verb: &str, audited: &'static str) {
        let tokens = self.tokens();
        let token = tokens[pick as usize % tokens.len()];
        let query = status.map(|status| format!("?status={status}")).unwrap_or_default();
        let (_, _, page) = self.plane.call("GET", &format!("/api/v1/runs{query}"), token, None).await;
        let runs = page["items"].as_array().unwrap();
        let Some(index) = (pick as usize).checked_rem(runs.len()) else { return };
        let run = runs[index]["id"].as_str().unwrap();
        let (status, _) = self.post(&format!("/api/v1/{path}/{run}/{verb}"), token, json!({})).await;
        // Asking a begun apply twice to stop is two decisions, and both are recorded.
        if status.is_success() {
            self.note(|history| *history.told.entry(audited.to_owned()).or_default() += 1);
        }
    }

    async fn work(&self) {
        let worker = self.plane.as_function(Function::Worker);
        plumbline_worker::handle(&worker, &self.launcher, &NoShortTasks).await.unwrap();
    }

    async fn sweep(&self) {
        let reconciler = self.plane.as_function(Function::Reconciler);
        let done = plumbline_reconciler::handle(&reconciler, &self.launcher, &NoShortTasks).await;
        for sweep in &done.sweeps {
            assert!(sweep.outcome.is_ok(), "{sweep:?}");
        }
        done.worked.unwrap();
    }

    /// A sweep that is alone leaves nothing that is due and has room.
    async fn look_for_overlooked(&self) {
        const OVERLOOKED: &str = "
            SELECT t.id FROM tasks t JOIN queue_units q USING (business_unit_id, class)
            WHERE t.status = 'queued' AND t.run_after <= plumbline_now() AND q.running < $1";
        self.sweep().await;
        let conn = self.plane.db().conn().await.unwrap();
        let rows = conn.query(OVERLOOKED, &[&CAP]).await.unwrap();
        self.note(|history| history.overlooked.extend(rows.iter().map(|row| row.get::<_, Uuid>(0))));
    }

    /// Everybody who lives finishes; then the sweeps and the clock do the rest.
    async fn settle(&self) {
        for _ in 0..SETTLE_MAX {
            self.sweep().await;
            self.adopt();
            for actor in self.living().await {
                let mut actor = actor.lock().await;
                for _ in 0..STEPS_MAX {
                    self.step(&mut actor, Answer::Seen).await;
                }
            }
            let conn = self.plane.db().conn().await.unwrap();
            let left = "SELECT (SELECT count(*) FROM tasks)
                             + (SELECT count(*) FROM executors WHERE status <> 'stopped')";
            if conn.query_one(left, &[]).await.unwrap().get::<_, i64>(0) == 0 {
                return;
            }
            drop(conn);
            self.plane.advance(TICK).await;
        }
    }
}
