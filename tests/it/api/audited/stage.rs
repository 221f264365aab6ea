//! A world in which every route succeeds: a fresh unit for each call, and what the call needs in it.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ids::{BusinessUnitId, UserId, WorkspaceId};
use plumbline_core::tasks::{self, FailedAttempt, TaskClass};
use plumbline_runtime::Function;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::cloud_accounts::ACCOUNT;
use super::super::issuer_keys::trusting_aws;
use super::super::tenants::Foreign;
use crate::executors::{ADDS_ONE, FakeExecutor, NO_CHANGES, plan_file};
use crate::idp::Idp;
use crate::plane::{ADMIN_EMAIL, TestPlane};
use crate::store::state_client::{Backend, insert_workspace, state};

/// A person and their token.
#[derive(Clone)]
pub(super) struct Person {
    pub(super) id: UserId,
    pub(super) token: String,
}

/// A unit in which only one thing happens.
#[derive(Clone)]
pub(super) struct Unit {
    pub(super) id: BusinessUnitId,
    pub(super) slug: String,
}

/// The world.
pub(super) struct Stage {
    /// A unit with one of everything, for routes that only read.
    pub(super) whole: Foreign,
    /// Signs the tokens of CI systems.
    pub(super) idp: Idp,
    /// An admin of every unit here, and of none elsewhere.
    pub(super) admin: Person,
    pub(super) superadmin: Person,
    units: AtomicUsize,
}

impl Stage {
    /// `None`, with the reason printed, where there is nothing to make an identity provider's keys with.
    pub(super) async fn set() -> Option<Self> {
        let idp = Idp::start().await?;
        let mut plane = TestPlane::start().await;
        plane.deps.allow_private_addresses = true;
        let whole = Foreign::on(Backend::on(plane).await).await;
        let plane = whole.plane();
        let admin = person(plane, plane.member(whole.backend.unit, Role::Admin).await).await;
        plane.admin_token().await;
        let superadmin = person(plane, plane.login(ADMIN_EMAIL).await).await;
        let stage = Self { whole, idp, admin, superadmin, units: AtomicUsize::new(0) };
        // One to look at.
        stage.made(&stage.default_unit(), "POST", "admin/rekey", None).await;
        Some(stage)
    }

    pub(super) fn plane(&self) -> &TestPlane {
        self.whole.plane()
    }

    /// The unit that has one of everything.
    pub(super) fn default_unit(&self) -> Unit {
        Unit { id: self.whole.backend.unit, slug: "default".into() }
    }

    /// A new unit, with the admin in it.
    pub(super) async fn fresh(&self) -> Unit {
        let slug = format!("unit-{}", self.units.fetch_add(1, Ordering::Relaxed));
        let id = self.plane().unit(&slug).await;
        self.join(self.admin.id, id, "admin").await;
        Unit { id, slug }
    }

    async fn join(&self, user: UserId, unit: BusinessUnitId, role: &str) {
        const JOIN: &str = "INSERT INTO memberships (user_id, business_unit_id, role) VALUES ($1, $2, $3)";
        let conn = self.plane().db().conn().await.unwrap();
        conn.execute(JOIN, &[&user, &unit, &role]).await.unwrap();
    }

    /// A viewer of the unit who is in no other.
    pub(super) async fn member(&self, unit: &Unit) -> Person {
        person(self.plane(), self.plane().member(unit.id, Role::Viewer).await).await
    }

    /// What the superadmin gets of a call in the unit, which must succeed.
    pub(super) async fn made(
        &self,
        unit: &Unit,
        method: &str,
        path: &str,
        body: impl Into<Option<Value>>,
    ) -> Value {
        let headers = [("if-match", "*"), ("x-business-unit", unit.slug.as_str())];
        let path = format!("/api/v1/{path}");
        let (status, _, answer) =
            self.plane().call_with(method, &path, self.superadmin.token.as_str(), body, &headers).await;
        assert!(status.is_success(), "{method} {path}: {status} {answer}");
        answer
    }

    /// The id of something that the superadmin makes.
    pub(super) async fn id(&self, unit: &Unit, path: &str, body: Value) -> String {
        text(&self.made(unit, "POST", path, body).await["id"])
    }

    /// What only the owner of the database can do.
    pub(super) async fn execute(&self, sql: &str) {
        self.plane().db().conn().await.unwrap().batch(sql).await.unwrap();
    }

    /// Uploads as the signed request says.
    pub(super) async fn store(&self, request: &Value, bytes: &[u8]) {
        let url = text(&request["url"]);
        let key = url.split('?').next().unwrap().split("/blobs/").nth(1).unwrap();
        let blobs = &self.plane().deps.blobs;
        blobs.put(key, bytes::Bytes::copy_from_slice(bytes), "application/octet-stream").await.unwrap();
    }

    /// A workspace whose state people may write.
    pub(super) async fn workspace(&self, unit: &Unit) -> WorkspaceId {
        insert_workspace(self.plane(), unit.id, "runs_and_people").await
    }

    /// A new run of a new workspace.
    pub(super) async fn run(&self, unit: &Unit, command: &str) -> String {
        let workspace = self.workspace(unit).await;
        self.id(unit, "runs", json!({ "workspace_id": workspace, "command": command })).await
    }

    /// The executor of a run's next phase. Other runs may wait for theirs, too.
    pub(super) async fn executor(&self, run: &str) -> FakeExecutor<'_> {
        loop {
            let executor = FakeExecutor::start(self.plane()).await;
            if executor.bundle.run_id.to_string() == run {
                return executor;
            }
        }
    }

    /// A run that plans.
    pub(super) async fn planning(&self, unit: &Unit) -> FakeExecutor<'_> {
        let run = self.run(unit, "apply").await;
        self.executor(&run).await
    }

    /// A run whose plan can be approved.
    pub(super) async fn planned(&self, unit: &Unit) -> String {
        let executor = self.planning(unit).await;
        assert_eq!(executor.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
        executor.bundle.run_id.to_string()
    }

    /// A plan-only run that has ended.
    pub(super) async fn plan_only(&self, unit: &Unit) -> String {
        let run = self.run(unit, "plan").await;
        assert_eq!(self.executor(&run).await.plan(NO_CHANGES).await.0, StatusCode::NO_CONTENT);
        run
    }

    /// An approved run whose executor has its bundle.
    pub(super) async fn approved(&self, unit: &Unit) -> FakeExecutor<'_> {
        let run = self.planned(unit).await;
        self.made(unit, "POST", &format!("approvals/{run}/approve"), json!({})).await;
        self.executor(&run).await
    }

    /// The same, once it has begun to change things.
    pub(super) async fn applying(&self, unit: &Unit) -> FakeExecutor<'_> {
        let executor = self.approved(unit).await;
        assert_eq!(executor.begin_apply().await.0, StatusCode::NO_CONTENT);
        executor
    }

    /// What completes the plan of a run that planned [`ADDS_ONE`].
    pub(super) async fn finished_plan(&self, executor: &FakeExecutor<'_>) -> Value {
        executor.pin().await;
        for (kind, status) in executor.upload_plan(ADDS_ONE).await {
            assert_eq!(status, StatusCode::NO_CONTENT, "{kind:?}");
        }
        let plan = plan_file(&executor.bundle.run_id.to_string());
        json!({
            "plan_sha256": Sha256Digest::of(plan.as_bytes()),
            "plan_json_sha256": Sha256Digest::of(ADDS_ONE.as_bytes()),
            "lock_file_sha256": null, "base_lineage": null, "base_serial": null,
            "summary": plumbline_core::runs::summarise(ADDS_ONE.as_bytes()).unwrap(),
        })
    }

    /// Writes a state as a person.
    pub(super) async fn write_state(&self, workspace: WorkspaceId, query: &str, serial: i64) -> StatusCode {
        let path = format!("/api/v1/state/{workspace}{query}");
        let body: Value = serde_json::from_str(&state(serial, "l", &serial.to_string())).unwrap();
        self.plane().call("POST", &path, self.superadmin.token.as_str(), body).await.0
    }

    /// A workspace with two versions of its state, and the id of the older one.
    pub(super) async fn versions(&self, unit: &Unit) -> (WorkspaceId, String) {
        let workspace = self.workspace(unit).await;
        for serial in 1..=2 {
            assert_eq!(self.write_state(workspace, "", serial).await, StatusCode::OK);
        }
        let path = format!("workspaces/{workspace}/state-versions");
        let versions = self.made(unit, "GET", &path, None).await;
        (workspace, text(&versions["items"][1]["id"]))
    }

    /// A state that came under a lost lock.
    pub(super) async fn quarantined(&self, unit: &Unit) -> String {
        let (workspace, _) = self.versions(unit).await;
        self.write_state(workspace, "?ID=never-held", 3).await;
        let path = format!("workspaces/{workspace}/quarantined-states");
        text(&self.made(unit, "GET", &path, None).await["items"][0]["id"])
    }

    /// A short task that has failed for good.
    pub(super) async fn dead_letter(&self, unit: &Unit) -> String {
        let request = json!({ "repo_url": "https://git.example.com/infra.git" });
        let asked = self.made(unit, "POST", "workspaces/discover", request).await;
        let worker = self.plane().as_function(Function::Worker);
        let limits = &self.plane().deps.limits;
        loop {
            let claimed =
                tasks::service::claim(&worker.db, TaskClass::Short, "test", 1, limits).await.unwrap();
            let failure = FailedAttempt::Permanent("the forge said no".into());
            let lease = claimed[0].lease;
            let failed = worker
                .db
                .transaction(async |tx| tasks::service::fail(tx, lease, &failure, 0.0, limits).await);
            failed.await.unwrap();
            if json!(lease.task_id) == asked["task_id"] {
                return text(&asked["task_id"]);
            }
        }
    }

    /// A rule that trusts the identity provider, whose keys are known, and a token that the rule takes.
    /// The one-time code of somebody who has just come back from the identity provider.
    pub(super) async fn code(&self, member: &Person) -> String {
        const CAME_BACK: &str = "
            INSERT INTO oidc_sign_ins (state_hash, user_id, code_hash, generation, code_expires_at)
            VALUES ($1, $2, $3, 1, plumbline_now() + interval '1 minute')";
        let code = format!("plo_{}", member.id.0.simple());
        let (state, kept) = (Sha256Digest::of(b"a state"), Sha256Digest::of(code.as_bytes()));
        let conn = self.plane().db().conn().await.unwrap();
        conn.execute(CAME_BACK, &[&&state.0[..], &member.id, &&kept.0[..]]).await.unwrap();
        code
    }

    /// An executor whose plan gets into AWS by tokens, and has had one.
    pub(super) async fn trusted(&self, unit: &Unit) -> FakeExecutor<'_> {
        self.made(unit, "POST", "aws-accounts", trusting_aws()).await;
        let workspace = self.workspace(unit).await;
        let link = json!({ "state_aws_account_id": ACCOUNT });
        self.made(unit, "PUT", &format!("workspaces/{workspace}"), link).await;
        let run = self.id(unit, "runs", json!({ "workspace_id": workspace, "command": "plan" })).await;
        let executor = self.executor(&run).await;
        let (status, answer) =
            executor.call(http::Method::POST, "identity-token", json!({ "for": "aws" })).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        executor
    }

    pub(super) async fn ci_token(&self, unit: &Unit) -> String {
        let (audience, subject) = ("https://plumbline.test", "repo:acme/infra:ref:refs/heads/main");
        let rule =
            json!({ "name": "main", "issuer": self.idp.issuer, "audience": audience, "subject": subject });
        self.made(unit, "POST", "ci-trust-rules", rule).await;
        // Other issuers, which nobody answers for, were asked before.
        while self.plane().do_short_and_settle().await.is_err() {}
        let now = chrono::Utc::now().timestamp();
        self.idp
            .sign(&json!({ "iss": self.idp.issuer, "aud": audience, "sub": subject, "iat": now, "nbf": now,
                               "exp": now + 300, "repository": "acme/infra" }))
    }
}

async fn person(plane: &TestPlane, token: String) -> Person {
    let me = plane.call("GET", "/api/v1/me", token.as_str(), None).await.2;
    Person { id: UserId(text(&me["id"]).parse::<Uuid>().unwrap()), token }
}

/// A text that is there.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}
