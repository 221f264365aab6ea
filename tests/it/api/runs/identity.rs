//! Who gets a bundle on ECS: the task that was launched for the ticket, and nobody else who holds it.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use http::{HeaderMap, StatusCode};
use plumbline_core::db::{Connect, Db, PgMode, Query as _};
use plumbline_core::executors::TaskIdentity;
use plumbline_core::ports::LaunchRequest;
use plumbline_core::protocol::{IdentityProof, TradeRequest, VERSION};
use plumbline_runtime::Function;
use serde_json::Value;

use super::World;
use crate::executors::{FakeExecutor, nonce, prepare_on, record};
use crate::fake_sts::{Canned, FakeSts, Principal};
use crate::plane::slug;

const ACCOUNT: &str = "123456789012";
const ROLE: &str = "executor";
const TASK: &str = "0123456789abcdef0123456789abcdef";
const HANDLE: &str = "arn:aws:ecs:eu-central-1:123456789012:task/plumbline/0123456789abcdef0123456789abcdef";
const PATIENCE: Duration = Duration::from_secs(60);

/// A control plane that knows executors on ECS, and a run whose executor was launched there.
struct Ecs {
    world: World,
    sts: FakeSts,
    launch: LaunchRequest,
}

impl Ecs {
    /// The same with another launcher, which does not say yet what it calls the executor.
    async fn prepared(launcher: &str) -> Self {
        let sts = FakeSts::start().await;
        let mut world = World::new().await;
        let callers = Arc::new(sts.callers());
        world.plane.deps.task_identity = Some(TaskIdentity { callers, role: ROLE.into() });
        world.trigger("plan").await;
        let (_, launch) = prepare_on(&world.plane, launcher).await.expect("a task is due");
        Self { world, sts, launch }
    }

    async fn unrecorded() -> Self {
        Self::prepared("ecs").await
    }

    async fn launched() -> Self {
        let ecs = Self::unrecorded().await;
        ecs.record().await;
        ecs
    }

    async fn record(&self) {
        record(&self.world.plane, &self.launch, HANDLE).await;
    }

    /// The task that was launched.
    fn task(&self) -> Principal {
        self.sts.task(ACCOUNT, ROLE, TASK)
    }

    fn request(&self, n: u8, identity: Option<IdentityProof>) -> TradeRequest {
        TradeRequest { protocol: VERSION, ticket: self.launch.ticket.clone(), nonce: nonce(n), identity }
    }

    async fn trade(&self, n: u8, identity: Option<IdentityProof>) -> (StatusCode, HeaderMap, Value) {
        let body = serde_json::to_value(self.request(n, identity)).unwrap();
        self.world.plane.call("POST", "/executor/v1/trade", None, body).await
    }

    /// The proof of a principal for this ticket.
    async fn proof(&self, principal: &Principal) -> IdentityProof {
        principal.sign_in().await.prove(&self.launch.ticket, Utc::now())
    }

    /// The right task trades.
    async fn assert_task_trades(&self) {
        let (status, _, bundle) = self.trade(1, Some(self.proof(&self.task()).await)).await;
        assert_eq!(status, StatusCode::OK, "{bundle}");
    }

    /// What the audit log says about refused callers, in order.
    async fn refusals(&self) -> Vec<Value> {
        const DETAILS: &str = "
            SELECT details FROM audit_entries WHERE action = 'executor.identity_refused' AND resource_id = $1
            ORDER BY sequence";
        let conn = self.world.plane.db().conn().await.unwrap();
        let id = self.launch.executor_id.to_string();
        conn.query(DETAILS, &[&id]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    async fn is_traded(&self) -> bool {
        const TRADED: &str = "SELECT traded_at IS NOT NULL FROM tickets WHERE executor_id = $1";
        let conn = self.world.plane.db().conn().await.unwrap();
        conn.query_one(TRADED, &[&self.launch.executor_id]).await.unwrap().get(0)
    }
}

#[tokio::test]
async fn the_launched_task_gets_its_bundle_and_gets_it_again() {
    let ecs = Ecs::launched().await;
    let (status, _, bundle) = ecs.trade(1, Some(ecs.proof(&ecs.task()).await)).await;
    assert_eq!(status, StatusCode::OK, "{bundle}");
    // The answer was lost: the same executor asks again, with a fresh signature.
    let (status, _, again) = ecs.trade(1, Some(ecs.proof(&ecs.task()).await)).await;
    assert_eq!((status, &again["token"]), (StatusCode::OK, &bundle["token"]));
    assert_eq!(ecs.refusals().await, Vec::<Value>::new());
}

#[tokio::test]
async fn whoever_else_holds_the_ticket_gets_nothing_and_leaves_it_usable() {
    let ecs = Ecs::launched().await;
    let session = |account, role, name| ecs.sts.task(account, role, name);
    let user = ecs.sts.principal(&format!("arn:aws:iam::{ACCOUNT}:user/{TASK}"));
    let task = ecs.task();
    let foreign_ticket = task.sign_in().await.prove("another ticket", Utc::now());
    let whole = ecs.proof(&task).await;
    let headers = "content-type;host;x-amz-date;x-amz-security-token;x-plumbline-ticket";
    let ticket_unsigned = IdentityProof {
        authorization: whole
            .authorization
            .replace(headers, "content-type;host;x-amz-date;x-amz-security-token"),
        ..whole.clone()
    };
    let garbage = IdentityProof { authorization: "x".into(), date: "x".into(), security_token: "x".into() };
    let strangers = [
        (None, "no proof"),
        (Some(garbage), "not a signature"),
        (Some(ticket_unsigned), "not a signature"),
        (Some(foreign_ticket), "SignatureDoesNotMatch"),
        (Some(ecs.proof(&session(ACCOUNT, ROLE, "ffffffffffffffffffffffffffffffff")).await), "another task"),
        (Some(ecs.proof(&session("210987654321", ROLE, TASK)).await), "another account"),
        (Some(ecs.proof(&session(ACCOUNT, "developer", TASK)).await), "another role"),
        (Some(ecs.proof(&user).await), "not a session"),
    ];
    for (n, (identity, why)) in (1..).zip(strangers) {
        let (status, _, problem) = ecs.trade(n, identity).await;
        assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "identity-refused"), "{why}");
        let refusals = ecs.refusals().await;
        assert_eq!(refusals.len(), usize::from(n), "{why}");
        let reason = refusals.last().unwrap()["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains(why), "{reason}");
        assert!(problem["detail"].as_str().unwrap().contains(why), "{problem}");
    }
    let caller = ecs.refusals().await[5]["caller"].clone();
    assert_eq!(caller, format!("arn:aws:sts::210987654321:assumed-role/{ROLE}/{TASK}"), "it says who it was");
    assert!(!ecs.is_traded().await);
    ecs.assert_task_trades().await;
}

#[tokio::test]
async fn a_thief_cannot_end_an_attempt_with_a_ticket_alone() {
    let ecs = Ecs::launched().await;
    let (_, _, bundle) = ecs.trade(1, Some(ecs.proof(&ecs.task()).await)).await;
    let executor = FakeExecutor::traded(
        &ecs.world.plane,
        ecs.launch.clone(),
        serde_json::from_value(bundle).expect("a bundle"),
    );
    let other = ecs.proof(&ecs.sts.task(ACCOUNT, ROLE, "ffffffffffffffffffffffffffffffff")).await;
    for identity in [None, Some(other)] {
        let (status, _, problem) = ecs.trade(2, identity).await;
        assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "identity-refused"));
    }
    assert_eq!(executor.heartbeat().await.0, StatusCode::OK, "the attempt goes on");
}

#[tokio::test]
async fn a_control_plane_that_cannot_know_executors_refuses_them() {
    let mut ecs = Ecs::launched().await;
    let identity = ecs.world.plane.deps.task_identity.take();
    let (status, _, problem) = ecs.trade(1, Some(ecs.proof(&ecs.task()).await)).await;
    assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "identity-refused"), "{problem}");
    assert_eq!(ecs.refusals().await.len(), 1);
    ecs.world.plane.deps.task_identity = identity;
    ecs.assert_task_trades().await;
}

#[tokio::test]
async fn an_executor_of_this_machine_needs_no_proof() {
    let ecs = Ecs::prepared("local").await;
    let (status, _, bundle) = ecs.trade(1, None).await;
    assert_eq!(status, StatusCode::OK, "{bundle}");
    assert_eq!(ecs.sts.requests(), 0);
}

#[tokio::test]
async fn an_sts_that_is_away_costs_a_moment_and_nothing_else() {
    let ecs = Ecs::launched().await;
    let away = Canned { status: StatusCode::INTERNAL_SERVER_ERROR, location: None, body: String::new() };
    ecs.sts.answer(Some(away));
    let (status, headers, problem) = ecs.trade(1, Some(ecs.proof(&ecs.task()).await)).await;
    assert_eq!((status, slug(&problem)), (StatusCode::SERVICE_UNAVAILABLE, "unavailable"));
    assert!(headers.contains_key("retry-after"));
    assert_eq!(ecs.refusals().await.len(), 0, "nobody was refused");
    ecs.sts.answer(None);
    ecs.assert_task_trades().await;
}

#[tokio::test]
async fn a_task_whose_launch_is_not_recorded_yet_is_asked_to_come_again() {
    let ecs = Ecs::unrecorded().await;
    let (status, headers, problem) = ecs.trade(1, Some(ecs.proof(&ecs.task()).await)).await;
    assert_eq!((status, slug(&problem)), (StatusCode::SERVICE_UNAVAILABLE, "launch-unrecorded"));
    assert!(headers.contains_key("retry-after"));
    assert_eq!((ecs.sts.requests(), ecs.refusals().await.len()), (0, 0));
    ecs.record().await;
    ecs.assert_task_trades().await;
}

#[tokio::test]
async fn a_void_ticket_is_void_whoever_asks() {
    let ecs = Ecs::launched().await;
    let conn = ecs.world.plane.db().conn().await.unwrap();
    conn.execute("UPDATE tickets SET voided_at = plumbline_now()", &[]).await.unwrap();
    drop(conn);
    for identity in [None, Some(ecs.proof(&ecs.task()).await)] {
        let (status, _, problem) = ecs.trade(1, identity).await;
        assert_eq!((status, slug(&problem)), (StatusCode::GONE, "ticket-void"));
    }
    assert_eq!((ecs.sts.requests(), ecs.refusals().await.len()), (0, 0));
}

#[tokio::test]
async fn no_connection_and_no_lock_waits_for_sts() {
    let ecs = Ecs::launched().await;
    let proof = ecs.proof(&ecs.task()).await;
    // As a function has it.
    let connect = Connect { url: ecs.world.plane.database_url.clone(), pool_size: 1, mode: PgMode::Direct };
    let mut deps = ecs.world.plane.as_function(Function::Callback);
    deps.db = Db::new(&connect).unwrap();
    ecs.sts.hold().await;
    let request = ecs.request(1, Some(proof));
    let asked = ecs.sts.requests();
    let trading = {
        let deps = deps.clone();
        tokio::spawn(async move { plumbline_core::executors::trade::trade(&deps, &request).await })
    };
    until("STS is asked", || ecs.sts.requests() > asked).await;

    let conn = tokio::time::timeout(Duration::from_secs(3), deps.db.conn()).await;
    let conn = conn.expect("the only connection is free").unwrap();
    conn.query_one("SELECT 1 FROM tickets FOR UPDATE NOWAIT", &[]).await.expect("nothing is locked");
    drop(conn);
    ecs.sts.release();
    trading.await.unwrap().expect("a bundle");
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "this never came: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The real program, against the real routes.
struct Program {
    child: Child,
    log: std::path::PathBuf,
    _directory: tempfile::TempDir,
}

impl Program {
    async fn start(ecs: &Ecs, principal: &Principal) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = plumbline_callback::router(ecs.world.plane.as_function(Function::Callback));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("executor.log");
        let child = Command::new(plumbline_tests::bin("executor-task"))
            .env("PLUMBLINE_CALLBACK_URL", url)
            .env("PLUMBLINE_TICKET", &ecs.launch.ticket)
            .env("PLUMBLINE_TASK_ID", ecs.launch.task_id.to_string())
            .env("PLUMBLINE_WORK_DIR", directory.path())
            .envs(principal.environment())
            .stdin(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { child, log, _directory: directory }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn the_real_executor_proves_itself_as_soon_as_its_launch_is_recorded() {
    let ecs = Ecs::unrecorded().await;
    let program = Program::start(&ecs, &ecs.task()).await;
    until("it is told to come again", || program.log().contains("trying again")).await;
    assert!(!ecs.is_traded().await);
    ecs.record().await;
    until("the attempt begins", || program.log().contains("attempt begun")).await;
    assert!(ecs.is_traded().await);
    assert_eq!(ecs.refusals().await.len(), 0);
}

#[tokio::test]
async fn the_real_executor_gives_up_where_another_task_s_ticket_is_refused() {
    let ecs = Ecs::launched().await;
    let stranger = ecs.sts.task(ACCOUNT, ROLE, "ffffffffffffffffffffffffffffffff");
    let mut program = Program::start(&ecs, &stranger).await;
    let mut code = None;
    until("it ends", || {
        code = program.child.try_wait().unwrap().map(|status| status.code());
        code.is_some()
    })
    .await;
    assert_eq!(code, Some(Some(1)), "{}", program.log());
    assert!(program.log().contains("identity-refused"), "{}", program.log());
    assert!(!ecs.is_traded().await);
    ecs.assert_task_trades().await;
}
