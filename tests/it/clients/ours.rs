//! Our own backend as a target of the matrix, whose database the cases look into.

use async_trait::async_trait;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::protocol::RunPhase;
use plumbline_core::tfstates::LockInfo;
use plumbline_core::tfstates::service;
use plumbline_runtime::Function;
use plumbline_tests::clients::{Favour, Insight, Methods, Place, Target, Who};
use serde_json::json;

use crate::plane::TestPlane;
use crate::store::object_stores::{self, Store};
use crate::store::state_client::{Backend, announce, insert_workspace, lock_info, send_signed};

/// A plane behind real HTTP, over an object store that signed URLs reach.
pub struct Ours {
    backend: Backend,
    origin: String,
    api_key: String,
    writer: String,
    viewer: String,
    _store: Store,
}

impl Ours {
    pub async fn start() -> Self {
        let store = object_stores::s3s_fs().await;
        let mut plane = TestPlane::start().await;
        plane.deps.blobs = store.blobs.clone();
        let backend = Backend::on(plane).await;
        let plane = &backend.plane;
        let (writer, viewer) = (plane.user(Role::Operator).await, plane.user(Role::Viewer).await);
        let key = json!({ "name": "of the matrix", "capability": "apply" });
        let (status, _, key) = plane.call("POST", "/api/v1/api-keys", backend.token.as_str(), key).await;
        assert_eq!(status.as_u16(), 201, "{key}");
        let origin = backend.serve().await;
        let api_key = key["token"].as_str().unwrap().to_owned();
        Self { backend, origin, api_key, writer, viewer, _store: store }
    }

    /// An executor writes a state of its own under its own lock, in the way that has no limit of size.
    async fn fill(&self, workspace: WorkspaceId, size_bytes: usize) {
        let apply = self.backend.executor(RunPhase::Apply).await;
        let deps = &self.backend.plane.as_function(Function::Callback);
        let info = LockInfo::parse(lock_info("an-executors").as_bytes()).unwrap();
        service::lock(deps, &apply, workspace, &info).await.unwrap();
        let lineage = "00000000-0000-4000-8000-000000000003";
        let body = json!({
            "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": lineage, "resources": [],
            "outputs": { "small": { "value": "a small output", "type": "string" },
                         // Sensitive, so that no plan prints it.
                         "big": { "value": "0123456789abcdef".repeat(size_bytes / 16), "type": "string", "sensitive": true } },
            "check_results": null,
        })
        .to_string();
        let begin = announce(Some("an-executors"), 1, lineage, &body);
        let upload = service::begin_upload(deps, &apply, workspace, &begin).await.unwrap();
        assert!(send_signed(&upload.request, body).await.0.is_success());
        service::commit_upload(deps, &apply, workspace, upload.upload_id).await.unwrap();
        service::unlock(deps, &apply, workspace, &info).await.unwrap();
    }
}

fn workspace_of(place: &Place) -> WorkspaceId {
    place.address.rsplit('/').next().unwrap().parse().unwrap()
}

#[async_trait]
impl Target for Ours {
    fn is_exact(&self) -> bool {
        true
    }

    async fn fresh(&self) -> anyhow::Result<Place> {
        let id = insert_workspace(&self.backend.plane, self.backend.unit, "runs_and_people").await;
        Ok(Place { address: format!("{}/api/v1/state/{id}", self.origin), methods: Methods::USUAL })
    }

    async fn credentials(&self, who: Who, _: &Place) -> anyhow::Result<Option<(String, String)>> {
        let (user, password) = match who {
            Who::Admin => ("terraform", self.backend.token.as_str()),
            Who::OfANamedUnit => ("unit/default", self.backend.token.as_str()),
            Who::ApiKey => ("anything", self.api_key.as_str()),
            Who::Writer => ("terraform", self.writer.as_str()),
            Who::Viewer => ("terraform", self.viewer.as_str()),
            Who::Stranger => ("terraform", "a wrong password"),
        };
        Ok(Some((user.to_owned(), password.to_owned())))
    }

    async fn look(&self, place: &Place) -> anyhow::Result<Option<Insight>> {
        const VERSIONS: &str = "
            SELECT serial, lineage FROM state_versions WHERE workspace_id = $1 ORDER BY created_at, id";
        const QUARANTINED: &str = "SELECT count(*) FROM quarantined_states WHERE workspace_id = $1";
        const LOCK: &str = "SELECT lock_id FROM tfstates WHERE workspace_id = $1";
        const AUDIT: &str = "SELECT action FROM audit_entries WHERE workspace_id = $1 ORDER BY sequence";
        let id = workspace_of(place);
        let conn = self.backend.plane.db().conn().await?;
        let versions = conn.query(VERSIONS, &[&id]).await?;
        let quarantined: i64 = conn.query_one(QUARANTINED, &[&id]).await?.get(0);
        Ok(Some(Insight {
            serials: versions.iter().map(|row| row.get(0)).collect(),
            lineages: versions.iter().map(|row| row.get(1)).collect(),
            quarantined: quarantined.try_into()?,
            lock_id: conn.query_opt(LOCK, &[&id]).await?.and_then(|row| row.get(0)),
            audit: conn.query(AUDIT, &[&id]).await?.iter().map(|row| row.get(0)).collect(),
        }))
    }

    async fn favour(&self, place: &Place, favour: &Favour) -> anyhow::Result<bool> {
        const RUNS_ONLY: &str = "UPDATE workspaces SET state_writes = 'runs_only' WHERE id = $1";
        let id = workspace_of(place);
        match favour {
            Favour::AcceptNextLineage => {
                let (status, body) =
                    self.backend.api("POST", &format!("workspaces/{id}/accept-next-lineage")).await;
                anyhow::ensure!(status.as_u16() == 204, "{status} {body}");
            }
            Favour::RunsOnly => {
                let conn = self.backend.plane.db().conn().await?;
                conn.execute(RUNS_ONLY, &[&id]).await?;
            }
            Favour::Fill(size_bytes) => self.fill(id, *size_bytes).await,
        }
        Ok(true)
    }
}
