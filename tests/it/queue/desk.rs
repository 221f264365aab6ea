//! What the queue's tests do over and over: units, tasks, claims, and looking at rows.

use std::time::Duration;

use plumbline_core::db::{Db, DbError, Query};
use plumbline_core::executors;
use plumbline_core::ids::{BusinessUnitId, IdSource, TaskId};
use plumbline_core::limits::Limits;
use plumbline_core::ports::Launcher;
use plumbline_core::sweeps;
use plumbline_core::tasks::{
    Backoff, ClaimedTask, Enqueued, FailedAttempt, FinishedOutcome, Lease, NewTask, TaskClass, TaskError,
    TaskKind, service,
};
use plumbline_runtime::Function;
use uuid::Uuid;

use crate::plane::TestPlane;

/// The defaults with a cheap password cost and launches without a ration.
pub(super) fn cheap_limits() -> Limits {
    Limits { bcrypt_cost: 4, launches_per_second: 1e6, ..Limits::default() }
}

/// A task of the kind about a row of its own.
pub(super) fn new_task(kind: TaskKind, unit: BusinessUnitId) -> NewTask {
    let subject = Uuid::now_v7();
    NewTask::new(kind, unit, subject, format!("{}:{subject}", kind.as_str()))
}

/// A business unit with the given slug.
pub(super) async fn unit(db: &Db, slug: &str) -> BusinessUnitId {
    let id: BusinessUnitId = IdSource.mint();
    let sql = "INSERT INTO business_units (id, slug, name) VALUES ($1, $2, $2)";
    db.conn().await.unwrap().execute(sql, &[&id, &slug]).await.unwrap();
    id
}

/// `count` units `unit-000`, `unit-001` and so on.
pub(super) async fn units(db: &Db, count: usize) -> Vec<BusinessUnitId> {
    let mut units = Vec::new();
    for n in 0..count {
        units.push(unit(db, &format!("unit-{n:03}")).await);
    }
    units
}

/// Enqueues in a transaction of its own.
pub(super) async fn enqueue(db: &Db, task: &NewTask) -> Enqueued {
    db.transaction(async |tx| service::enqueue(tx, IdSource, task).await).await.unwrap()
}

/// Enqueues a task of the kind about a row of its own.
pub(super) async fn enqueue_one(db: &Db, kind: TaskKind, unit: BusinessUnitId) -> TaskId {
    enqueue(db, &new_task(kind, unit)).await.task_id()
}

impl TestPlane {
    /// Claims up to `batch` tasks.
    pub(super) async fn claim(&self, class: TaskClass, batch: i32) -> Vec<ClaimedTask> {
        let worker = self.as_function(Function::Worker);
        service::claim(&worker.db, class, "a worker", batch, &worker.limits).await.unwrap()
    }

    /// Claims the one task that must be there.
    pub(super) async fn claim_one(&self, class: TaskClass) -> ClaimedTask {
        self.claim(class, 1).await.pop().expect("a task is due")
    }

    pub(super) async fn finish(&self, lease: Lease) -> Result<(), TaskError> {
        self.db()
            .transaction(async |tx| service::finish(tx, lease, FinishedOutcome::Done, None, None).await)
            .await
    }

    pub(super) async fn fail(&self, lease: Lease, failure: FailedAttempt) -> Result<Backoff, TaskError> {
        self.db()
            .transaction(async |tx| service::fail(tx, lease, &failure, 0.0, &self.deps.limits).await)
            .await
    }

    pub(super) async fn give_back(&self, lease: Lease) -> Result<(), TaskError> {
        self.db().transaction(async |tx| service::give_back(tx, lease, Duration::ZERO, "no room").await).await
    }

    pub(super) async fn go_live(&self, lease: Lease) -> Result<(), TaskError> {
        let limits = &self.deps.limits;
        self.db()
            .transaction(async |tx| service::go_live(tx, lease, limits.plan_wall_clock, limits).await)
            .await
    }

    pub(super) async fn heartbeat(&self, lease: Lease) -> Result<bool, TaskError> {
        let conn = self.db().conn().await.unwrap();
        service::heartbeat(&conn, lease, &self.deps.limits).await
    }

    /// Launches a claimed task's executor.
    pub(super) async fn launch(&self, launcher: &dyn Launcher, task: &ClaimedTask) {
        let worker = self.as_function(Function::Worker);
        let request = executors::service::prepare_launch(&worker, task, launcher.name()).await.unwrap();
        let handle = launcher.launch(&request).await.unwrap();
        executors::service::record_launched(&worker, request.executor_id, &handle).await.unwrap();
    }

    /// What a trade does to the queue's rows.
    pub(super) async fn trade(&self, task: &ClaimedTask) {
        self.go_live(task.lease).await.unwrap();
        let sql = "WITH traded AS (UPDATE tickets SET traded_at = plumbline_now()
                       FROM executors x WHERE executor_id = x.id AND x.task_id = $1 AND x.lease_token = $2)
                   UPDATE executors SET status = 'live', traded_at = plumbline_now()
                   WHERE task_id = $1 AND lease_token = $2";
        let conn = self.db().conn().await.unwrap();
        conn.execute(sql, &[&task.lease.task_id, &task.lease.token]).await.unwrap();
    }

    /// The lease sweep alone.
    pub(super) async fn judge(&self) {
        plumbline_core::tasks::sweeps::judge_silent(&self.as_function(Function::Reconciler)).await.unwrap();
    }

    /// Every sweep.
    pub(super) async fn sweep(&self, launcher: &dyn Launcher) {
        for report in sweeps::run_all(&self.as_function(Function::Reconciler), launcher).await {
            assert!(report.outcome.is_ok(), "{report:?}");
        }
    }

    /// Runs one statement.
    pub(super) async fn execute(&self, sql: &str) -> Result<(), DbError> {
        self.db().conn().await?.batch(sql).await
    }

    /// The first column of the first row, as text.
    pub(super) async fn text(&self, sql: &str) -> Option<String> {
        let row = self.db().conn().await.unwrap().query_opt(sql, &[]).await.unwrap();
        row.and_then(|row| row.get(0))
    }

    /// A count.
    pub(super) async fn count(&self, sql: &str) -> i64 {
        self.db().conn().await.unwrap().query_one(sql, &[]).await.unwrap().get(0)
    }
}
