//! Defects planted into the running service, each of which a checker must find. Nothing of the product knows of them:
//! they stand between clients and the service, in the test's own database, or in its object store.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use plumbline_core::db::{Param, Query as _, Row};
use serde_json::json;
use uuid::Uuid;

use super::checkers;
use super::history::{Operation, Who};
use super::servers::{Draft, Reply, Server};
use super::truth;
use super::world::{Asked, Cast, World};
use crate::plane::TestPlane;
use crate::store::state_client::md5_of;

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    NoIdCheck,
    NoGenerationInCommits,
    NoSerialCheck,
    LockNotIdempotent,
    UnlockOfAnotherAccepted,
    PendingUploadDropped,
    LineageUnchecked,
    WriteWithoutLockAccepted,
    HeadNotMoved,
    StaleReadCache,
    BodyDeleted,
    AuditEntryMissing,
    ForceUnlockOfTheLiving,
    QuarantinedDropped,
    ErrorForRefusal,
    GenerationStays,
    LockOfStoppedStays,
    LiveHolderRefused,
    BodyAltered,
}

/// Each with the checker that finds it.
const DEFECTS: [(Defect, &str); 19] = [
    (Defect::NoIdCheck, "no write outside of its lock is the head"),
    (Defect::NoGenerationInCommits, "no write outside of its lock is the head"),
    (Defect::NoSerialCheck, "serials rise"),
    (Defect::LockNotIdempotent, "the lock is linearizable"),
    (Defect::UnlockOfAnotherAccepted, "the lock is linearizable"),
    (Defect::PendingUploadDropped, "no lock is given back before its uploads"),
    (Defect::LineageUnchecked, "a workspace has one lineage"),
    (Defect::WriteWithoutLockAccepted, "no write outside of its lock is the head"),
    (Defect::HeadNotMoved, "the head is linearizable"),
    (Defect::StaleReadCache, "reads never go back"),
    (Defect::BodyDeleted, "every body is there"),
    (Defect::AuditEntryMissing, "the audit log is complete"),
    (Defect::ForceUnlockOfTheLiving, "the lock is linearizable"),
    (Defect::QuarantinedDropped, "quarantined states are kept"),
    (Defect::ErrorForRefusal, "only faults make errors"),
    (Defect::GenerationStays, "generations rise"),
    (Defect::LockOfStoppedStays, "everything settles"),
    (Defect::LiveHolderRefused, "the live holder is never refused"),
    (Defect::BodyAltered, "every version was asked for"),
];

/// A defect in place.
pub struct Planted {
    defect: Defect,
    calls: AtomicUsize,
    /// Reads that are answered from memory, by workspace.
    cache: Mutex<BTreeMap<usize, Reply>>,
}

/// Where a defect shows every so many calls only.
const EVERY: usize = 7;

impl Planted {
    pub fn new(defect: Defect) -> Self {
        Self { defect, calls: AtomicUsize::new(0), cache: Mutex::default() }
    }

    /// What is done to the database and to the object stores.
    pub async fn plant(&self, plane: &TestPlane, servers: &[Server; 2]) {
        let on_tfstates = |body: &str| {
            format!(
                "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NEW; END $$;
                 CREATE TRIGGER a_planted BEFORE UPDATE ON tfstates FOR EACH ROW EXECUTE FUNCTION planted()"
            )
        };
        let sql = match self.defect {
            Defect::HeadNotMoved => on_tfstates(
                "IF OLD.head_version_id IS DISTINCT FROM NEW.head_version_id AND random() < 0.2 THEN
                     NEW.head_version_id := OLD.head_version_id; NEW.head_serial := OLD.head_serial;
                     NEW.head_lineage := OLD.head_lineage; NEW.head_key := OLD.head_key;
                     NEW.head_size_bytes := OLD.head_size_bytes; NEW.head_md5 := OLD.head_md5;
                     NEW.head_sha256 := OLD.head_sha256;
                 END IF;",
            ),
            Defect::GenerationStays => {
                on_tfstates("IF OLD.lock_id IS NULL AND random() < 0.2 THEN NEW.generation := OLD.generation; END IF;")
            }
            Defect::LockOfStoppedStays => on_tfstates(
                "IF OLD.lock_executor_id IS NOT NULL AND NEW.lock_id IS NULL AND NEW.generation > OLD.generation THEN
                     RETURN OLD;
                 END IF;",
            ),
            Defect::AuditEntryMissing => "
                CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    IF NEW.action = 'state.unlock' AND random() < 0.3 THEN RETURN NULL; END IF;
                    RETURN NEW;
                END $$;
                CREATE TRIGGER a_planted BEFORE INSERT ON audit_entries FOR EACH ROW EXECUTE FUNCTION planted()"
                .into(),
            Defect::QuarantinedDropped => "
                CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
                    DELETE FROM quarantined_states WHERE id = NEW.id;
                    RETURN NEW;
                END $$;
                CREATE TRIGGER a_planted AFTER INSERT ON quarantined_states FOR EACH ROW EXECUTE FUNCTION planted()"
                .into(),
            Defect::BodyDeleted => {
                servers.iter().for_each(|server| server.store.lose_every(4));
                return;
            }
            _ => return,
        };
        plane.db().conn().await.unwrap().batch(&sql).await.unwrap();
    }

    /// Serves a call as a service with the defect would.
    pub async fn serve(&self, world: &World, asked: &mut Asked, server: u8) -> Option<Reply> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        let place = asked.workspace;
        match (self.defect, asked.operation.clone()) {
            (Defect::NoIdCheck, Operation::Write { lock: Some(_), .. })
            | (Defect::WriteWithoutLockAccepted, Operation::Write { lock: None, .. }) => {
                if let Some(id) = persons_lock(world, place).await.filter(|_| is_persons(asked)) {
                    let path = asked.draft.uri.split('?').next().unwrap().to_owned();
                    asked.draft.uri = format!("{path}?ID={id}");
                }
            }
            (Defect::NoGenerationInCommits, Operation::Commit { upload, .. }) => {
                const TAKE_OVER: &str = "
                    UPDATE state_uploads u SET generation = t.generation, lock_id = t.lock_id FROM tfstates t
                    WHERE t.workspace_id = u.workspace_id AND t.lock_id IS NOT NULL AND u.id = $1";
                execute(world, TAKE_OVER, &[&upload]).await;
            }
            (Defect::NoSerialCheck, Operation::Write { state, .. }) => {
                const LOWER: &str =
                    "UPDATE tfstates SET head_serial = $2 - 1 WHERE workspace_id = $1 AND head_serial >= $2";
                execute(world, LOWER, &[&world.workspaces[place], &state.serial]).await;
            }
            (Defect::LineageUnchecked, Operation::Write { .. }) => {
                const ACCEPT: &str = "UPDATE tfstates SET accept_next_lineage = true WHERE workspace_id = $1";
                execute(world, ACCEPT, &[&world.workspaces[place]]).await;
            }
            (Defect::LockNotIdempotent, Operation::Lock { id }) => {
                let held = persons_lock(world, place).await;
                if held.as_ref() == Some(&id) {
                    return Some(reply(423, &json!({ "ID": id })));
                }
            }
            (Defect::UnlockOfAnotherAccepted, Operation::Unlock { .. }) => {
                if let Some(id) = persons_lock(world, place).await.filter(|_| is_persons(asked)) {
                    give_body(&mut asked.draft, json!({ "ID": id }).to_string().into());
                }
            }
            (Defect::PendingUploadDropped, Operation::Unlock { id }) => {
                const DROP: &str =
                    "UPDATE state_uploads SET status = 'abandoned' WHERE status = 'pending' AND lock_id = $1";
                execute(world, DROP, &[&id]).await;
            }
            (Defect::ForceUnlockOfTheLiving, Operation::ForceUnlock) => {
                const FORGET: &str = "UPDATE tfstates SET lock_executor_id = NULL WHERE workspace_id = $1";
                execute(world, FORGET, &[&world.workspaces[place]]).await;
            }
            // One of the processes answers from memory, and seldom looks again.
            (Defect::StaleReadCache, Operation::Read) if server.is_multiple_of(2) => {
                let known = self.cache.lock().unwrap().get(&place).cloned();
                if let Some(known) = known.filter(|_| !number.is_multiple_of(EVERY)) {
                    return Some(known);
                }
                let fresh = world.route(&asked.draft, server).await?;
                self.cache.lock().unwrap().insert(place, fresh.clone());
                return Some(fresh);
            }
            (Defect::LiveHolderRefused, Operation::Write { is_next: true, .. })
                if number.is_multiple_of(EVERY) =>
            {
                return Some(reply(409, &json!({ "type": "urn:plumbline:problem:state-refused" })));
            }
            (Defect::ErrorForRefusal, _) => {
                let served = world.route(&asked.draft, server).await?;
                let is_refused = served.status == 409 && number.is_multiple_of(EVERY);
                return Some(if is_refused { reply(500, &json!({})) } else { served });
            }
            (Defect::BodyAltered, Operation::Write { .. }) if number.is_multiple_of(EVERY) => {
                let altered = [asked.draft.body.as_ref(), b"\n"].concat();
                give_body(&mut asked.draft, altered.into());
            }
            _ => {}
        }
        world.route(&asked.draft, server).await
    }
}

fn is_persons(asked: &Asked) -> bool {
    matches!(asked.who, Who::Person(_))
}

fn reply(status: u16, body: &serde_json::Value) -> Reply {
    Reply { status, location: None, body: body.to_string().into() }
}

fn give_body(draft: &mut Draft, body: Bytes) {
    draft.content_md5 = Some(md5_of(&body));
    draft.body = body;
}

async fn query(world: &World, sql: &str, params: &[&dyn Param]) -> Option<Row> {
    world.plane.db().conn().await.unwrap().query_opt(sql, params).await.unwrap()
}

async fn execute(world: &World, sql: &str, params: &[&dyn Param]) {
    world.plane.db().conn().await.unwrap().execute(sql, params).await.unwrap();
}

async fn persons_lock(world: &World, place: usize) -> Option<String> {
    const HELD: &str = "SELECT lock_id FROM tfstates WHERE workspace_id = $1 AND lock_user_id IS NOT NULL";
    let workspace: Uuid = world.workspaces[place];
    query(world, HELD, &[&workspace]).await?.get(0)
}

/// A defect that is not found within this is not found.
const WITHIN: Duration = Duration::from_secs(60);
/// Calls after which the history is looked at; then another seed goes on.
const CALLS: usize = 600;

/// Executors upload: there is one in each workspace, and people leave them few of the calls.
fn shows_in_uploads(defect: Defect) -> bool {
    matches!(
        defect,
        Defect::NoGenerationInCommits | Defect::PendingUploadDropped | Defect::LockOfStoppedStays
    )
}

#[expect(clippy::print_stdout, reason = "how long each takes to be found")]
async fn find(defect: Defect, checker: &str) {
    let began = Instant::now();
    for seed in 1.. {
        let (people, workspaces) = if shows_in_uploads(defect) { (4, 4) } else { (6, 2) };
        let cast = Cast { seed, people, workspaces, is_broken_hard: false, defect: Some(defect) };
        let world = World::new(cast).await;
        world.run(WITHIN, CALLS).await;
        world.settle().await;
        let found = checkers::violations(&truth::history(&world).await);
        if let Some((_, what)) = found.iter().find(|(name, _)| *name == checker) {
            let what: String = what.chars().take(300).collect();
            println!("{defect:?}: found after {:?}, with seed {seed}: {checker}: {what}", began.elapsed());
            return;
        }
        assert!(began.elapsed() < WITHIN, "{defect:?} is not found by {checker}; but {found:#?}");
    }
}

async fn find_all(defects: &[(Defect, &str)]) {
    for (defect, checker) in defects {
        find(*defect, checker).await;
    }
}

#[test]
fn for_every_checker_a_defect_is_planted_but_for_what_nobody_could_lose_alone() {
    for (name, _) in checkers::CHECKERS {
        let is_found = DEFECTS.iter().any(|(_, checker)| *checker == name);
        // A version that is not what was written is both: asked for by nobody, and not what was accepted.
        assert!(is_found || name == "no accepted write is lost", "no defect is planted for: {name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defects_of_locks_and_fences_are_found() {
    find_all(&DEFECTS[..8]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defects_of_heads_bodies_and_records_are_found() {
    find_all(&DEFECTS[8..]).await;
}
