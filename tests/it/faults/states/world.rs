//! A control plane with several processes, a database and an object store that get into trouble, and the calls to it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use plumbline_core::access::Role;
use plumbline_core::adapters::DirectoryStore;
use plumbline_core::db::PgMode;
use plumbline_core::limits::Limits;
use plumbline_core::secrets::Domain;
use serde_json::{Value, json};
use uuid::Uuid;

use super::answers::interpret;
use super::chronicle::Chronicle;
use super::defects::Planted;
use super::history::{Event, Operation, Who};
use super::platform::Platform;
use super::program::Program;
use super::script::{Delivery, Step};
use super::servers::{Draft, Reply, Server, cut};
use crate::faults::cluster::PrivateCluster;
use crate::plane::{TestPlane, cluster_url};

/// After this a client gives up waiting.
const PATIENCE: Duration = Duration::from_secs(20);
const INLINE_READ_BYTES_MAX: usize = 2 << 10;
const DAY: Duration = Duration::from_secs(24 * 3600);
const BLOBS_URL: &str = "http://127.0.0.1:9/blobs";

/// What a world is made of.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    pub seed: u64,
    pub people: usize,
    /// Each has an executor after the other, and people besides.
    pub workspaces: usize,
    /// A cluster of its own that is stopped in between, and the function's own program that is killed.
    pub is_broken_hard: bool,
    pub defect: Option<super::defects::Defect>,
}

/// The whole.
pub struct World {
    pub cast: Cast,
    pub plane: TestPlane,
    pub chronicle: Arc<Chronicle>,
    pub servers: [Server; 2],
    pub program: Option<Program>,
    pub cluster: Option<tokio::sync::Mutex<PrivateCluster>>,
    pub objects: DirectoryStore,
    pub workspaces: Vec<Uuid>,
    /// Tokens of people.
    pub people: Vec<String>,
    pub platform: Platform,
    /// Held while runs are prepared, and by whoever breaks what that needs.
    pub calm: tokio::sync::Mutex<()>,
    /// Taken by whoever prepares a run of the workspace: its plan goes stale if people change the state meanwhile.
    pub quiet: Vec<tokio::sync::RwLock<()>>,
    pub planted: Option<Planted>,
    _scratch: tempfile::TempDir,
}

/// A call and what it means.
#[derive(Clone, Debug)]
pub struct Asked {
    pub workspace: usize,
    pub who: Who,
    pub operation: Operation,
    pub draft: Draft,
}

impl World {
    pub async fn new(cast: Cast) -> Arc<Self> {
        let limits = Limits {
            bcrypt_cost: 4,
            inline_read_bytes_max: INLINE_READ_BYTES_MAX,
            access_token_age: 30 * DAY,
            refresh_token_age: 30 * DAY,
            apply_wall_clock: Duration::from_secs(360),
            ..Limits::default()
        };
        let cluster = match cast.is_broken_hard {
            true => Some(PrivateCluster::start().await),
            false => None,
        };
        let url = cluster.as_ref().map_or_else(cluster_url, PrivateCluster::url);
        // One connection for each of its functions: what a fault has broken is then found at once.
        let mut plane = TestPlane::start_on(&url, limits, 1, PgMode::Direct).await;
        let scratch = tempfile::tempdir().unwrap();
        let key = *plane.deps.keys.key(Domain::Blobs).unwrap();
        let objects = DirectoryStore::new(scratch.path(), BLOBS_URL, key);
        plane.deps.blobs = Arc::new(objects.clone());
        super::truth::keep_a_journal(&plane).await;
        let chronicle = Arc::new(Chronicle::default());
        let servers = [(); 2].map(|()| Server::start(&plane, &objects, &chronicle));
        let program = match cast.is_broken_hard {
            true => Some(Program::start(&plane, scratch.path()).await),
            false => None,
        };
        let mut people = Vec::new();
        for _ in 0..cast.people {
            people.push(plane.user(Role::Admin).await);
        }
        let mut workspaces = Vec::new();
        for number in 0..cast.workspaces {
            workspaces.push(workspace(&plane, &people[0], number).await);
        }
        let planted = cast.defect.map(Planted::new);
        if let Some(planted) = &planted {
            planted.plant(&plane, &servers).await;
        }
        Arc::new(Self {
            cast,
            plane,
            platform: Platform::new(chronicle.clone()),
            chronicle,
            servers,
            program,
            cluster: cluster.map(tokio::sync::Mutex::new),
            objects,
            workspaces,
            people,
            calm: tokio::sync::Mutex::default(),
            quiet: (0..cast.workspaces).map(|_| tokio::sync::RwLock::default()).collect(),
            planted,
            _scratch: scratch,
        })
    }

    /// Makes the call as the step wants, and writes down what comes of it. `None`: nobody knows.
    pub async fn perform(&self, asked: &Asked, step: &Step) -> Option<Reply> {
        if step.delivery != Delivery::Twice {
            return self.once(asked, step.server, step.delivery).await;
        }
        self.chronicle.count("calls sent twice");
        let again = step.server.wrapping_add(1) % 5;
        let (first, second) = tokio::join!(
            self.once(asked, step.server, Delivery::Seen),
            self.once(asked, again, Delivery::Seen),
        );
        first.or(second)
    }

    async fn once(&self, asked: &Asked, server: u8, delivery: Delivery) -> Option<Reply> {
        let from = self.chronicle.tick();
        let mut sent = asked.clone();
        let served = async {
            match &self.planted {
                Some(planted) => planted.serve(self, &mut sent, server).await,
                None => self.route(&sent.draft, server).await,
            }
        };
        let reply = match delivery {
            Delivery::RequestLost => {
                self.chronicle.count("lost requests");
                None
            }
            Delivery::AnswerLost => {
                self.chronicle.count("lost answers");
                // Whatever came of it, nobody hears.
                let _ = tokio::time::timeout(PATIENCE, served).await;
                None
            }
            Delivery::Cut { wakes } => {
                let reply = cut(served, wakes).await;
                if reply.is_none() {
                    self.chronicle.count("calls cut off");
                }
                reply.flatten()
            }
            Delivery::Seen | Delivery::Twice => tokio::time::timeout(PATIENCE, served).await.ok().flatten(),
        };
        let reply = match reply {
            Some(reply) => Some(self.follow(reply).await),
            None => None,
        };
        let to = reply.as_ref().map(|_| self.chronicle.tick());
        self.chronicle.note(Event {
            workspace: Some(asked.workspace),
            who: asked.who,
            from,
            to,
            operation: asked.operation.clone(),
            answer: reply.as_ref().map(|reply| interpret(&asked.operation, reply)),
        });
        // To a client, an error of the server says nothing.
        reply.filter(|reply| reply.status < 500 && reply.status != 424)
    }

    /// Sends a request to one of the processes. `None`: it was killed meanwhile.
    pub async fn route(&self, draft: &Draft, server: u8) -> Option<Reply> {
        let is_persons = draft.uri.starts_with("/api/v1/state/");
        match &self.program {
            // The program takes what gateways let through: not the methods LOCK and UNLOCK.
            Some(program) if server == 2 && is_persons => match draft.method {
                "LOCK" => program.call(&at_the_lock(draft, "POST")).await,
                "UNLOCK" => program.call(&at_the_lock(draft, "DELETE")).await,
                _ => program.call(draft).await,
            },
            _ => Some(self.servers[usize::from(server) % 2].call(draft).await),
        }
    }

    /// A large state is elsewhere.
    async fn follow(&self, reply: Reply) -> Reply {
        let Some(location) = reply.location.as_ref().filter(|_| reply.status == 307) else { return reply };
        let (key, query) = self.signed(location);
        match self.objects.accept_get(key, query).await {
            Ok(body) => Reply { status: 200, location: None, body },
            Err(_) => Reply { status: 424, location: None, body: Bytes::new() },
        }
    }

    /// Key and query of a signed URL.
    pub fn signed<'u>(&self, url: &'u str) -> (&'u str, &'u str) {
        let (path, query) = url.split_once('?').unwrap();
        (path.strip_prefix(BLOBS_URL).unwrap().trim_start_matches('/'), query)
    }

    /// A look at the API that is no part of the history. `None`: it failed.
    pub async fn look(&self, path: &str, server: u8) -> Option<Value> {
        let draft = Draft {
            method: "GET",
            uri: format!("/api/v1/{path}"),
            authorization: format!("Bearer {}", self.people[0]),
            content_md5: None,
            body: Bytes::new(),
        };
        let reply = self.servers[usize::from(server) % 2].call(&draft).await;
        serde_json::from_slice(&reply.body).ok().filter(|_| reply.status == 200)
    }
}

fn at_the_lock(draft: &Draft, method: &'static str) -> Draft {
    Draft { method, uri: format!("{}/lock", draft.uri), ..draft.clone() }
}

async fn workspace(plane: &TestPlane, token: &str, number: usize) -> Uuid {
    let body = json!({ "name": format!("net-{number}"), "environment": "dev", "state_writes": "runs_and_people",
                       "repo_url": format!("https://git.example.com/net-{number}.git") });
    let (status, _, made) = plane.call("POST", "/api/v1/workspaces", token, body).await;
    assert!(status.is_success(), "{made}");
    made["id"].as_str().unwrap().parse().unwrap()
}
