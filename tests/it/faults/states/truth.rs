//! What the database and the object store say once everything has settled.

use plumbline_core::db::{Query as _, Row};
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::BlobStore as _;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::Client;
use super::history::{Entry, History, Kept, Move, Operation, Version, Written};
use super::script::{Act, Delivery, Step};
use super::weather::event;
use super::world::World;
use crate::plane::TestPlane;

/// From now on each change of a head or a lock is written down with it, in the order of the commits.
pub async fn keep_a_journal(plane: &TestPlane) {
    const JOURNAL: &str = "
        CREATE TABLE state_journal (at bigserial, workspace_id uuid, generation bigint, lock_id text, head uuid);
        CREATE FUNCTION state_journal() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN
            IF TG_OP = 'INSERT' OR (NEW.generation, NEW.lock_id, NEW.head_version_id)
                IS DISTINCT FROM (OLD.generation, OLD.lock_id, OLD.head_version_id)
            THEN
                INSERT INTO state_journal (workspace_id, generation, lock_id, head)
                VALUES (NEW.workspace_id, NEW.generation, NEW.lock_id, NEW.head_version_id);
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER state_journal AFTER INSERT OR UPDATE ON tfstates
            FOR EACH ROW EXECUTE FUNCTION state_journal()";
    plane.db().conn().await.unwrap().batch(JOURNAL).await.unwrap();
}

/// The whole history.
pub async fn history(world: &std::sync::Arc<World>) -> History {
    last_reads(world).await;
    let mut history = History {
        workspaces: world.workspaces.len(),
        events: world.chronicle.events.lock().unwrap().clone(),
        windows: world.chronicle.windows.lock().unwrap().clone(),
        faults: world.chronicle.faults.lock().unwrap().clone(),
        ..History::default()
    };
    // Whoever has ended, and no sweep has told of it, may be stopped by now or later.
    let untold = world.platform.untold().into_iter();
    history
        .events
        .extend(untold.map(|(executor, at)| event(Operation::Stop { executor }, None, at, None, 0)));
    let workspace = |row: &Row| {
        let id: Uuid = row.get("workspace_id");
        world.workspaces.iter().position(|own| *own == id)
    };
    for row in rows(world, "SELECT * FROM state_versions ORDER BY id").await {
        let Some(workspace) = workspace(&row) else { continue };
        history.versions.push(Version {
            id: row.get("id"),
            workspace,
            state: state(&row),
            generation: row.get("generation"),
            rolled_back_from: row.get("rolled_back_from"),
            has_body: has_body(world, &row).await,
        });
    }
    for row in rows(world, "SELECT * FROM quarantined_states ORDER BY id").await {
        let Some(workspace) = workspace(&row) else { continue };
        let has_body = has_body(world, &row).await;
        history.kept.push(Kept { id: row.get("id"), workspace, state: state(&row), has_body });
    }
    for row in rows(world, "SELECT * FROM state_journal ORDER BY at").await {
        let Some(workspace) = workspace(&row) else { continue };
        history.moves.push(Move {
            workspace,
            generation: row.get("generation"),
            lock: row.get("lock_id"),
            head: row.get("head"),
        });
    }
    const AUDIT: &str = "
        SELECT workspace_id, action, details::text AS details FROM audit_entries
        WHERE action LIKE 'state.%' AND workspace_id IS NOT NULL ORDER BY chain_id, sequence";
    for row in rows(world, AUDIT).await {
        let Some(workspace) = workspace(&row) else { continue };
        let details: Value = serde_json::from_str(row.get("details")).unwrap();
        let id = |name: &str| details[name].as_str().and_then(|id| id.parse().ok());
        history.audit.push(Entry {
            workspace,
            action: row.get("action"),
            version: id("version_id"),
            lock: details["lock_id"].as_str().map(str::to_owned),
        });
    }
    let verified = world.plane.call("GET", "/api/v1/audit/verify", world.people[0].as_str(), None).await.2;
    history.chain_fault = (verified["ok"] != json!(true)).then(|| verified.to_string());
    history.left_over = left_over(world).await;
    history
}

async fn rows(world: &World, sql: &str) -> Vec<Row> {
    world.plane.db().conn().await.unwrap().query(sql, &[]).await.unwrap()
}

fn state(row: &Row) -> Written {
    Written {
        serial: row.get::<_, Option<i64>>("serial").unwrap_or(-1),
        lineage: row.get::<_, Option<String>>("lineage").unwrap_or_default(),
        sha256: hex::encode(row.get::<_, &[u8]>("sha256")),
    }
}

/// Whether the object store has exactly the body that a row names.
async fn has_body(world: &World, row: &Row) -> bool {
    let Ok(body) = world.objects.get(row.get("key")).await else { return false };
    let size: i64 = row.get("size_bytes");
    Sha256Digest::of(&body).0.as_slice() == row.get::<_, &[u8]>("sha256")
        && usize::try_from(size).is_ok_and(|size| size == body.len())
}

/// Every process is asked what the head is, now that nothing changes it any more.
async fn last_reads(world: &std::sync::Arc<World>) {
    let mut client = Client::person(world.clone(), 0);
    for place in 0..world.workspaces.len() {
        client.go_to(place);
        for server in 0..3 {
            let step = Step { act: Act::Read, pick: 0, server, padding: 0, delivery: Delivery::Seen };
            client.read(&step).await;
        }
    }
}

async fn left_over(world: &World) -> Vec<String> {
    const LEFT: [(&str, &str); 3] = [
        ("pending upload", "SELECT id FROM state_uploads WHERE status = 'pending'"),
        ("executor that may live", "SELECT id FROM executors WHERE status <> 'stopped'"),
        (
            "lock of an executor that has stopped",
            "SELECT workspace_id FROM tfstates WHERE lock_executor_id IS NOT NULL",
        ),
    ];
    let mut found = Vec::new();
    for (what, sql) in LEFT {
        found.extend(rows(world, sql).await.iter().map(|row| format!("{what} {}", row.get::<_, Uuid>(0))));
    }
    found
}
