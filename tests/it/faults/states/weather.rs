//! What befalls everybody: faults, sweeps, and the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use plumbline_core::Deps;
use plumbline_core::db::Query as _;
use plumbline_core::sweeps::{self, SweepReport};
use plumbline_core::{executors, tasks};
use plumbline_runtime::Function;
use tokio::task::JoinHandle;

use super::executors::Executors;
use super::history::{Answer, Event, Operation, Who, Window};
use super::people::Person;
use super::script::{Blow, Part, Script};
use super::world::World;

const POLL: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);
/// Calls for which a fault of the database may be felt after it is over.
const ECHO: u64 = 60;
/// Shorter than what the lease sweep takes for an outage.
const TICK: Duration = Duration::from_secs(45);
/// Blows of which one is a restart, besides those of the script.
const RESTART_EVERY: usize = 12;
const SETTLE_ROUNDS: usize = 6;
const UPLOADS_ARE_OVER: Duration = Duration::from_secs(25 * 3600);

impl World {
    /// Everybody acts, until the time is over or so many operations are done.
    pub async fn run(self: &Arc<Self>, time: Duration, operations: usize) {
        self.chronicle.go_on();
        let ends_at = Instant::now() + time;
        let until = self.chronicle.operations() + operations;
        let mut tasks: Vec<JoinHandle<()>> = Vec::new();
        for number in 0..self.cast.people {
            let (world, mut person) = (self.clone(), Person::new(self, number));
            tasks.push(tokio::spawn(async move {
                while !world.chronicle.is_over() {
                    person.act().await;
                }
            }));
        }
        for place in 0..self.workspaces.len() {
            let (world, mut executors) = (self.clone(), Executors::new(self, place));
            tasks.push(tokio::spawn(async move {
                while !world.chronicle.is_over() {
                    executors.act().await;
                }
            }));
        }
        let sweeper = self.clone();
        tasks.push(tokio::spawn(async move { sweeper.sweep_often().await }));
        if self.planted.is_none() {
            let world = self.clone();
            tasks.push(tokio::spawn(async move { world.blow().await }));
        }
        while Instant::now() < ends_at && self.chronicle.operations() < until {
            assert!(!tasks.iter().any(JoinHandle::is_finished), "somebody has failed");
            tokio::time::sleep(POLL).await;
        }
        self.chronicle.end();
        for task in tasks {
            task.await.expect("nobody fails");
        }
    }

    /// `false`: it is over.
    pub async fn operations_pass(&self, count: usize) -> bool {
        let until = self.chronicle.operations() + count;
        while !self.chronicle.is_over() && self.chronicle.operations() < until {
            tokio::time::sleep(POLL).await;
        }
        !self.chronicle.is_over()
    }

    async fn blow(&self) {
        let mut script = Script::new(self.cast.seed, Part::Weather);
        for number in 1_usize.. {
            let (after, blow) = script.blow();
            let blow = if number.is_multiple_of(RESTART_EVERY) { Blow::RestartPostgres } else { blow };
            if !self.operations_pass(after).await {
                return;
            }
            match blow {
                Blow::RestartPostgres => self.restart_postgres().await,
                Blow::CutConnections => self.cut_connections().await,
                Blow::KillProgram => {
                    if let Some(program) = &self.program {
                        program.kill_and_start_again().await;
                        self.chronicle.count("kills of the program");
                    }
                }
                Blow::Advance { seconds } => {
                    let _calm = self.calm.lock().await;
                    self.plane.advance(Duration::from_secs(seconds)).await;
                    self.chronicle.count("clock jumps");
                }
                Blow::Store { server, trouble, calls } => {
                    self.servers[usize::from(server)].store.expect(trouble, calls);
                }
            }
        }
    }

    async fn restart_postgres(&self) {
        let Some(cluster) = &self.cluster else { return };
        let _calm = self.calm.lock().await;
        let from = self.chronicle.tick();
        let mut cluster = cluster.lock().await;
        cluster.stop_immediately().await;
        cluster.start_again().await;
        drop(cluster);
        self.reach_the_database().await;
        self.database_fault("restarts of Postgres", from);
    }

    async fn cut_connections(&self) {
        const CUT: &str = "
            SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let _calm = self.calm.lock().await;
        let from = self.chronicle.tick();
        self.plane.db().conn().await.unwrap().query_one(CUT, &[]).await.unwrap();
        self.reach_the_database().await;
        self.database_fault("cuts of all connections", from);
    }

    fn database_fault(&self, what: &'static str, from: u64) {
        self.chronicle.count(what);
        let to = self.chronicle.tick() + ECHO;
        self.chronicle.windows.lock().unwrap().push(Window { from, to });
    }

    /// The test's own connections work again.
    async fn reach_the_database(&self) {
        let deadline = Instant::now() + PATIENCE;
        let functions = [Function::Api, Function::Callback, Function::Worker, Function::Reconciler];
        let own = functions.map(|function| self.plane.as_function(function).db);
        for db in own.iter().chain([self.plane.db()]) {
            loop {
                let asked = match db.conn().await {
                    Ok(conn) => conn.query_one("SELECT 1", &[]).await,
                    Err(error) => Err(error),
                };
                match asked {
                    Ok(_) => break,
                    Err(error) => {
                        assert!(Instant::now() < deadline, "the database does not come back: {error:?}")
                    }
                }
                tokio::time::sleep(POLL).await;
            }
        }
    }

    async fn sweep_often(&self) {
        let mut script = Script::new(self.cast.seed, Part::Sweeps);
        loop {
            let (after, times, server) = script.sweep();
            if !self.operations_pass(after).await {
                return;
            }
            let at_once = (0..times).map(|number| {
                let server = usize::from(server + number) % 2;
                self.sweep(&self.servers[server].reconciler)
            });
            join_all(at_once).await;
        }
    }

    /// The sweeps, with what they settle for the state written down.
    pub async fn sweep(&self, reconciler: &Deps) {
        let ended = self.platform.untold();
        let from = self.chronicle.tick();
        let reports = self.sweeps(reconciler).await;
        let to = self.chronicle.tick();
        let outcome =
            |name: &str| reports.iter().find(|report| report.name == name).map(|report| &report.outcome);
        if let Some(outcome) = outcome("tfstates.uploads") {
            let status = if outcome.is_ok() { 200 } else { 503 };
            self.chronicle.note(event(Operation::Sweep, None, from, Some(to), status));
        }
        if outcome("executors.fates").is_some_and(Result::is_ok) {
            for (executor, at) in ended {
                if self.platform.tell(executor) {
                    self.chronicle.note(event(Operation::Stop { executor }, None, at, Some(to), 200));
                }
            }
        }
    }

    /// While clients meet a planted defect only those that end executors: the others would tidy up.
    async fn sweeps(&self, reconciler: &Deps) -> Vec<SweepReport> {
        if self.planted.is_none() || self.chronicle.is_over() {
            return sweeps::run_all(reconciler, &self.platform).await;
        }
        let fates = executors::liveness::refresh_fates(reconciler, &self.platform).await;
        tasks::sweeps::judge_silent(reconciler).await.unwrap();
        let outcome = fates.map_err(|error| error.to_string());
        vec![SweepReport { name: "executors.fates", outcome, elapsed: Duration::ZERO }]
    }

    /// Nothing is broken any more, everybody has ended, and time passes.
    pub async fn settle(&self) {
        for server in &self.servers {
            server.store.calm_down();
        }
        self.reach_the_database().await;
        for executor in self.living_executors().await {
            self.platform.end(executor);
        }
        for round in 0..SETTLE_ROUNDS {
            let by = if round + 2 == SETTLE_ROUNDS { UPLOADS_ARE_OVER } else { TICK };
            self.plane.advance(by).await;
            self.sweep(&self.servers[round % 2].reconciler).await;
        }
    }

    async fn living_executors(&self) -> Vec<uuid::Uuid> {
        const LIVING: &str = "SELECT id FROM executors WHERE status <> 'stopped'";
        let conn = self.plane.db().conn().await.unwrap();
        conn.query(LIVING, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

/// Something that no client asked for.
pub fn event(
    operation: Operation,
    workspace: Option<usize>,
    from: u64,
    to: Option<u64>,
    status: u16,
) -> Event {
    let answer = to.map(|_| Answer { status, ..Answer::default() });
    Event { workspace, who: Who::Person(usize::MAX), from, to, operation, answer }
}
