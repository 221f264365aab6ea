//! Replacing the root key below the API: nothing is lost, whoever writes or dies meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumbline_core::Deps;
use plumbline_core::access::Ctx;
use plumbline_core::db::Query as _;
use plumbline_core::limits::Limits;
use plumbline_core::rekeys::{self, Rekey, RekeyStatus};
use plumbline_core::secrets::{Domain, Keyring, Place, key_id_of};
use plumbline_runtime::Function;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::function_program::FunctionProgram;
use crate::plane::{ROOT_KEY, TestPlane};
use crate::world::World;

/// Values that `plant` did not make: the secret of access tokens, as somebody has signed in.
const MORE: usize = 1;
/// The root key after that of every plane.
pub const NEXT_ROOT_KEY: &str = "the next root key for tests only, 32 characters or more";
const SECRETS: usize = 10_000;
const WRITERS: usize = 20;
/// Of those, functions that were not deployed again yet and still seal with the old root key.
const OLD_WRITERS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(240);

/// Both root keys, the new one being the current.
pub fn both() -> Arc<Keyring> {
    Arc::new(Keyring::from_roots(NEXT_ROOT_KEY, &[ROOT_KEY]).unwrap())
}

fn superadmin() -> Ctx {
    super::audit_context()
}

/// A plane whose functions have both root keys.
async fn rotating() -> World {
    let mut world =
        World::on(TestPlane::start_with(Limits { bcrypt_cost: 4, ..Limits::default() }, 32).await).await;
    world.plane.deps.keys = both();
    world
}

async fn request(deps: &Deps) -> Rekey {
    let made = deps.db.transaction(async |tx| rekeys::service::request(tx, deps, &superadmin()).await);
    made.await.unwrap()
}

async fn progress(deps: &Deps) -> Rekey {
    rekeys::service::get(deps, &superadmin()).await.unwrap()
}

fn resealed(job: &Rekey) -> i64 {
    job.columns.iter().map(|column| column.resealed).sum()
}

/// Sweeps until the job has ended; the clock is moved past the last look.
pub async fn finish(plane: &TestPlane) -> Rekey {
    let reconciler = plane.as_function(Function::Reconciler);
    let deadline = Instant::now() + PATIENCE;
    loop {
        rekeys::sweeps::reseal(&reconciler).await.unwrap();
        let job = progress(&plane.deps).await;
        if job.status != RekeyStatus::Running {
            return job;
        }
        assert!(Instant::now() < deadline, "{job:?}");
        plane.advance(Duration::from_secs(31)).await;
    }
}

/// Where a value lives: one of the sealed columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Home {
    Run,
    Task,
    FinishedTask,
}

impl Home {
    fn place(self, row: Uuid) -> (Domain, Place) {
        match self {
            Self::Run => (Domain::Variables, Place { table: "runs", column: "variables_sealed", row }),
            Self::Task | Self::FinishedTask => {
                (Domain::Git, Place { table: "tasks", column: "payload", row })
            }
        }
    }

    fn seal(self, keys: &Keyring, row: Uuid, text: &str) -> String {
        let (domain, place) = self.place(row);
        keys.seal(domain, place, text).unwrap()
    }

    /// Rows like one that is there, with ids and values of their own.
    fn plant(self) -> &'static str {
        match self {
            Self::Run => {
                "INSERT INTO runs SELECT (jsonb_populate_record(r, jsonb_build_object('id', n.id, 'variables_sealed', n.sealed))).*
                 FROM runs r, unnest($1::uuid[], $2::text[]) AS n (id, sealed) WHERE r.id = $3"
            }
            Self::Task => {
                "INSERT INTO tasks SELECT (jsonb_populate_record(t, jsonb_build_object('id', n.id, 'subject_id', n.id,
                     'dedupe_key', n.id, 'payload', jsonb_build_object('login_sealed', n.sealed)))).*
                 FROM tasks t, unnest($1::uuid[], $2::text[]) AS n (id, sealed) WHERE t.subject_id = $3"
            }
            Self::FinishedTask => {
                "INSERT INTO finished_tasks (id, business_unit_id, class, kind, subject_id, payload, priority, outcome,
                     attempts, attempts_max, lease_token, dedupe_key, created_at)
                 SELECT n.id, t.business_unit_id, t.class, t.kind, n.id, jsonb_build_object('login_sealed', n.sealed), 1,
                        'done', 1, 1, 1, n.id, plumbline_now()
                 FROM tasks t, unnest($1::uuid[], $2::text[]) AS n (id, sealed) WHERE t.subject_id = $3"
            }
        }
    }

    fn write(self) -> &'static str {
        match self {
            Self::Run => "UPDATE runs SET variables_sealed = $2 WHERE id = $1",
            Self::Task => {
                "UPDATE tasks SET payload = jsonb_build_object('login_sealed', $2::text) WHERE id = $1"
            }
            Self::FinishedTask => {
                "UPDATE finished_tasks SET payload = jsonb_build_object('login_sealed', $2::text) WHERE id = $1"
            }
        }
    }

    fn read(self) -> &'static str {
        match self {
            Self::Run => "SELECT id, variables_sealed AS sealed FROM runs WHERE variables_sealed IS NOT NULL",
            Self::Task => {
                "SELECT id, payload ->> 'login_sealed' AS sealed FROM tasks WHERE payload ? 'login_sealed'"
            }
            Self::FinishedTask => {
                "SELECT id, payload ->> 'login_sealed' AS sealed FROM finished_tasks WHERE payload ? 'login_sealed'"
            }
        }
    }
}

const HOMES: [Home; 3] = [Home::Run, Home::Task, Home::FinishedTask];

/// What every secret is at this moment.
type Truth = BTreeMap<(Home, Uuid), String>;

/// Secrets in all columns, sealed with a root key.
async fn plant(world: &World, keys: &Keyring, count: usize) -> Truth {
    let run: Uuid = world.trigger("apply").await.parse().unwrap();
    let conn = world.plane.db().conn().await.unwrap();
    // No task is to be claimed: they are copied as they are.
    conn.batch("UPDATE tasks SET run_after = plumbline_now() + interval '1 day'").await.unwrap();
    let mut truth = Truth::new();
    for (n, home) in HOMES.into_iter().enumerate() {
        let ids: Vec<Uuid> = (0..count * (n + 1) / 3 - count * n / 3).map(|_| Uuid::now_v7()).collect();
        let texts: Vec<String> = ids.iter().map(|id| format!("secret of {id}")).collect();
        let sealed: Vec<String> =
            ids.iter().zip(&texts).map(|(id, text)| home.seal(keys, *id, text)).collect();
        assert_eq!(conn.execute(home.plant(), &[&ids, &sealed, &run]).await.unwrap(), ids.len() as u64);
        truth.extend(ids.into_iter().map(|id| (home, id)).zip(texts));
    }
    truth
}

/// Every secret opens with the ring, and is what it should be.
async fn assert_all_open(plane: &TestPlane, keys: &Keyring, truth: &Truth) {
    let conn = plane.db().conn().await.unwrap();
    let mut found = Truth::new();
    for home in HOMES {
        for row in conn.query(home.read(), &[]).await.unwrap() {
            let (id, sealed): (Uuid, String) = (row.get("id"), row.get("sealed"));
            assert_eq!(key_id_of(&sealed), Some(keys.key_id()), "{home:?} {id}");
            let (domain, place) = home.place(id);
            let opened =
                keys.open(domain, place, &sealed).unwrap_or_else(|error| panic!("{home:?} {id}: {error}"));
            found.insert((home, id), opened.expose().to_owned());
        }
    }
    assert!(&found == truth, "{} secrets, {} expected", found.len(), truth.len());
}

/// Writes new values into its own rows until it is told to stop.
async fn write(
    plane: &TestPlane,
    keys: &Keyring,
    rows: &[(Home, Uuid)],
    truth: &Mutex<Truth>,
    stop: &AtomicBool,
) -> u64 {
    let mut written = 0;
    while !stop.load(Ordering::SeqCst) {
        for (home, id) in rows {
            let text = format!("value {written} of {id}");
            let conn = plane.db().conn().await.unwrap();
            let sealed = home.seal(keys, *id, &text);
            assert_eq!(conn.execute(home.write(), &[id, &sealed]).await.unwrap(), 1);
            truth.lock().await.insert((*home, *id), text);
            written += 1;
            if stop.load(Ordering::SeqCst) {
                break;
            }
        }
    }
    written
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_secrets_are_sealed_again_under_twenty_writers_by_a_sweep_that_is_killed_and_resumed() {
    let world = rotating().await;
    let plane = &world.plane;
    let old = Keyring::from_root(ROOT_KEY).unwrap();
    let truth = plant(&world, &old, SECRETS).await;
    let rows: Vec<(Home, Uuid)> = truth.keys().copied().collect();
    let truth = Mutex::new(truth);
    request(&plane.deps).await;

    let (stop_old, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let writers = (0..WRITERS).map(|n| {
        // Each has a share of the rows of its own: what it wrote last is what must be there.
        let mine: Vec<(Home, Uuid)> = rows.iter().skip(n).step_by(WRITERS * 8).copied().collect();
        let (old, new) = (&old, both());
        let (truth, stop) = (&truth, if n < OLD_WRITERS { &stop_old } else { &stop });
        async move { write(plane, if n < OLD_WRITERS { old } else { &new }, &mine, truth, stop).await }
    });
    let sweeps = async {
        let killed = FunctionProgram::reconciler(plane).await;
        until(plane, "some secrets are sealed again", |job| resealed(job) > 1_000).await;
        killed.kill();
        let at = progress(&plane.deps).await;
        assert!(at.status == RekeyStatus::Running && resealed(&at) < SECRETS as i64, "midway: {at:?}");
        let resumed = FunctionProgram::reconciler(plane).await;
        until(plane, "it goes on", |job| resealed(job) > resealed(&at) + 500).await;
        stop_old.store(true, Ordering::SeqCst);
        let job = finish(plane).await;
        resumed.kill();
        stop.store(true, Ordering::SeqCst);
        job
    };
    let (job, written) = tokio::join!(sweeps, futures::future::join_all(writers));
    assert_eq!(job.status, RekeyStatus::Done, "{job:?}");
    assert!(written.iter().all(|written| *written > 0), "every writer wrote: {written:?}");

    // The old root key is gone.
    let new = Keyring::from_root(NEXT_ROOT_KEY).unwrap();
    assert_all_open(plane, &new, &truth.into_inner()).await;
}

async fn until(plane: &TestPlane, what: &str, is_so: impl Fn(&Rekey) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let job = progress(&plane.deps).await;
        if is_so(&job) {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {job:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_row_that_somebody_writes_is_passed_over_and_its_newer_value_stays() {
    let world = rotating().await;
    let plane = &world.plane;
    let old = Keyring::from_root(ROOT_KEY).unwrap();
    let mut truth = plant(&world, &old, 30).await;
    request(&plane.deps).await;
    let (home, id) = *truth.keys().next().unwrap();
    let mut conn = plane.db().conn().await.unwrap();
    let writing = conn.begin().await.unwrap();
    let newer = home.seal(&old, id, "newer");
    assert_eq!(writing.execute(home.write(), &[&id, &newer]).await.unwrap(), 1);

    assert_eq!(rekeys::sweeps::reseal(&plane.as_function(Function::Reconciler)).await.unwrap(), 29 + MORE);
    writing.commit().await.unwrap();
    truth.insert((home, id), "newer".into());

    assert_eq!(finish(plane).await.status, RekeyStatus::Done);
    assert_all_open(plane, &Keyring::from_root(NEXT_ROOT_KEY).unwrap(), &truth).await;
}

#[tokio::test]
async fn parallel_sweeps_share_the_work_and_seal_nothing_twice() {
    let world = rotating().await;
    let truth = plant(&world, &Keyring::from_root(ROOT_KEY).unwrap(), 900).await;
    request(&world.plane.deps).await;
    let reconciler = world.plane.as_function(Function::Reconciler);
    let sweeps = futures::future::join_all((0..4).map(|_| rekeys::sweeps::reseal(&reconciler))).await;
    let touched: usize = sweeps.into_iter().map(Result::unwrap).sum();
    assert_eq!(touched, 900 + MORE);
    assert_eq!(finish(&world.plane).await.status, RekeyStatus::Done);
    assert_all_open(&world.plane, &Keyring::from_root(NEXT_ROOT_KEY).unwrap(), &truth).await;
}

#[tokio::test]
async fn done_is_said_only_when_no_transaction_can_still_hold_an_old_value() {
    let world = rotating().await;
    plant(&world, &Keyring::from_root(ROOT_KEY).unwrap(), 3).await;
    request(&world.plane.deps).await;
    let reconciler = world.plane.as_function(Function::Reconciler);
    assert_eq!(rekeys::sweeps::reseal(&reconciler).await.unwrap(), 3 + MORE);
    assert_eq!(rekeys::sweeps::reseal(&reconciler).await.unwrap(), 0);
    assert_eq!(progress(&world.plane.deps).await.status, RekeyStatus::Running, "too early to say");
    world.plane.advance(Duration::from_secs(31)).await;
    rekeys::sweeps::reseal(&reconciler).await.unwrap();
    let job = progress(&world.plane.deps).await;
    assert_eq!(job.status, RekeyStatus::Done);
    assert!(job.columns.iter().all(|column| column.remaining == Some(0)), "{job:?}");
}

#[tokio::test]
async fn what_no_key_opens_is_named_and_the_rest_is_sealed_again() {
    let world = rotating().await;
    let mut truth = plant(&world, &Keyring::from_root(ROOT_KEY).unwrap(), 30).await;
    let lost = Keyring::from_root("a root key that nobody has any more, 32 characters").unwrap();
    let (home, id) = *truth.keys().next().unwrap();
    let conn = world.plane.db().conn().await.unwrap();
    conn.execute(home.write(), &[&id, &home.seal(&lost, id, "lost")]).await.unwrap();
    request(&world.plane.deps).await;

    let job = finish(&world.plane).await;
    assert_eq!(job.status, RekeyStatus::Failed);
    let named: Vec<(i64, &[Uuid])> = job
        .columns
        .iter()
        .filter(|column| column.unreadable > 0)
        .map(|column| (column.unreadable, &column.unreadable_rows[..]))
        .collect();
    assert_eq!(named, [(1, &[id][..])]);
    assert_eq!(resealed(&job), 29 + MORE as i64);

    // Replaced by a person, as `failed` asks for.
    let new = Keyring::from_root(NEXT_ROOT_KEY).unwrap();
    conn.execute(home.write(), &[&id, &home.seal(&new, id, "replaced")]).await.unwrap();
    truth.insert((home, id), "replaced".into());
    request(&world.plane.deps).await;
    assert_eq!(finish(&world.plane).await.status, RekeyStatus::Done);
    assert_all_open(&world.plane, &new, &truth).await;
}

#[tokio::test]
async fn a_reconciler_that_seals_with_another_root_does_nothing_and_says_so() {
    let world = rotating().await;
    plant(&world, &Keyring::from_root(ROOT_KEY).unwrap(), 3).await;
    request(&world.plane.deps).await;
    let old = Arc::new(Keyring::from_roots(ROOT_KEY, &[NEXT_ROOT_KEY]).unwrap());
    let stale = Deps { keys: old, ..world.plane.deps.clone() };
    assert_eq!(rekeys::sweeps::reseal(&stale).await.unwrap(), 0);
    let job = progress(&world.plane.deps).await;
    assert!(job.note.is_some_and(|note| note.contains("reconciler")));
    assert_eq!(finish(&world.plane).await.status, RekeyStatus::Done);
    assert_eq!(progress(&world.plane.deps).await.note, None);
}

#[tokio::test]
async fn a_root_key_that_still_seals_something_is_not_taken_away() {
    let world = rotating().await;
    let plane = &world.plane;
    let old = Keyring::from_root(ROOT_KEY).unwrap();
    let new = Keyring::from_root(NEXT_ROOT_KEY).unwrap();
    plant(&world, &old, 3).await;
    let check = async |key_ids: &str| {
        let checked = plumbline_migrate::check_roots(plane.db(), Some(key_ids)).await;
        checked.map_err(|error| error.to_string())
    };
    let all = [new.key_id(), old.key_id()].join(" ");
    assert_eq!(check(&all).await, Ok(()));
    let refused = check(new.key_id()).await.unwrap_err();
    // One value in each column that was planted, and the secret of access tokens since somebody signed in.
    for column in [
        "runs.variables_sealed",
        "tasks.payload.login_sealed",
        "finished_tasks.payload.login_sealed",
        "jwt_secrets.sealed",
    ] {
        let named = format!("1 in {column} under {}", old.key_id());
        assert!(refused.contains(&named), "{named}: {refused}");
    }
    assert!(refused.contains("plumb admin rekey"), "{refused}");

    request(&plane.deps).await;
    assert_eq!(finish(plane).await.status, RekeyStatus::Done);
    assert_eq!(check(new.key_id()).await, Ok(()));
    assert!(check(old.key_id()).await.is_err(), "nor is the new one");
}
