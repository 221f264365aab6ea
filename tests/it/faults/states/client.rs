//! What every client can do, a person's or an executor's, and what it remembers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use plumbline_core::digest::Sha256Digest;
use serde_json::json;

use super::answers::written;
use super::history::{Operation, Who, Written};
use super::script::Step;
use super::servers::{Draft, Reply};
use super::world::{Asked, World};
use crate::store::state_client::{basic, md5_of};

/// Lock ids of others, tried every now and then.
const REMEMBERED: usize = 8;
/// How long a client that has heard nothing waits before it goes on.
const RETRY_WAIT: Duration = Duration::from_millis(20);

/// One client, which is at one workspace at a time.
pub struct Client {
    pub world: Arc<World>,
    pub who: Who,
    pub place: usize,
    /// Begins every state's and lock's name.
    pub name: String,
    pub made: u64,
    authorization: String,
    base: String,
    /// It was told that the lock is its own.
    pub held: Option<String>,
    /// Locks that were its own, newest last.
    pub old: Vec<(usize, String)>,
    /// The head as it was read, and whether that was under the lock that is held. `Some(None)`: there was no state.
    pub head: Option<(Option<Written>, bool)>,
    /// The highest serial that it has tried since.
    pub top: i64,
    /// What it wrote last.
    pub last: Option<(usize, Option<String>, Written, Bytes)>,
}

impl Client {
    pub fn person(world: Arc<World>, number: usize) -> Self {
        let authorization = basic(&world.people[number]);
        Self::new(world, Who::Person(number), 0, format!("p{number}"), authorization)
    }

    pub fn new(world: Arc<World>, who: Who, place: usize, name: String, authorization: String) -> Self {
        let mut client = Self {
            world,
            who,
            place,
            name,
            made: 0,
            authorization,
            base: String::new(),
            held: None,
            old: Vec::new(),
            head: None,
            top: 0,
            last: None,
        };
        client.go_to(place);
        client
    }

    /// Turns to another workspace; nothing is known of it.
    pub fn go_to(&mut self, place: usize) {
        if place != self.place {
            self.head = None;
        }
        self.place = place;
        self.base = match self.who {
            Who::Person(_) => format!("/api/v1/state/{}", self.world.workspaces[place]),
            Who::Executor(_) => "/executor/v1/state".into(),
        };
    }

    pub fn label(&mut self) -> String {
        self.made += 1;
        format!("{}-{}", self.name, self.made)
    }

    pub async fn call(
        &self,
        method: &'static str,
        uri: String,
        operation: Operation,
        body: Bytes,
        step: &Step,
    ) -> Option<Reply> {
        let content_md5 = (!body.is_empty()).then(|| md5_of(&body));
        let draft = Draft { method, uri, authorization: self.authorization.clone(), content_md5, body };
        let asked = Asked { workspace: self.place, who: self.who, operation, draft };
        let reply = self.world.perform(&asked, step).await;
        if reply.is_none() {
            tokio::time::sleep(RETRY_WAIT).await;
        }
        reply
    }

    /// Asks again when there is no answer, as clients do.
    async fn insist(
        &self,
        method: &'static str,
        uri: &str,
        operation: &Operation,
        body: &Bytes,
        step: &Step,
    ) -> Option<Reply> {
        let first = self.call(method, uri.to_owned(), operation.clone(), body.clone(), step).await;
        if first.is_some() {
            return first;
        }
        let again = Step {
            server: step.server.wrapping_add(1) % 5,
            delivery: super::script::Delivery::Seen,
            ..*step
        };
        self.call(method, uri.to_owned(), operation.clone(), body.clone(), &again).await
    }

    fn lock_uri(&self) -> String {
        match self.who {
            Who::Person(_) => self.base.clone(),
            Who::Executor(_) => format!("{}/lock", self.base),
        }
    }

    /// Takes the lock; with its own id it then holds it.
    pub async fn lock(&mut self, id: &str, is_own: bool, step: &Step) -> Option<Reply> {
        let body = Bytes::from(lock_info(id, &self.name));
        let operation = Operation::Lock { id: id.to_owned() };
        let reply = self.insist("LOCK", &self.lock_uri(), &operation, &body, step).await;
        if is_own {
            match &reply {
                Some(reply) if reply.status == 200 => {
                    self.held = Some(id.to_owned());
                    self.head = None;
                }
                Some(_) => {}
                // It may hold it, and does not know: it gives up.
                None => self.remember(id),
            }
        }
        reply
    }

    pub async fn unlock(&mut self, id: &str, step: &Step) -> Option<Reply> {
        let body = Bytes::from(lock_info(id, &self.name));
        let operation = Operation::Unlock { id: id.to_owned() };
        self.insist("UNLOCK", &self.lock_uri(), &operation, &body, step).await
    }

    /// Takes the lock away from whoever holds it.
    pub async fn force(&self, step: &Step) -> Option<Reply> {
        self.call("UNLOCK", self.lock_uri(), Operation::ForceUnlock, Bytes::new(), step).await
    }

    pub fn remember(&mut self, id: &str) {
        self.held = None;
        self.head = None;
        self.old.push((self.place, id.to_owned()));
        if self.old.len() > REMEMBERED {
            self.old.remove(0);
        }
    }

    pub async fn read(&mut self, step: &Step) {
        let reply = self.call("GET", self.base.clone(), Operation::Read, Bytes::new(), step).await;
        let head = match reply {
            Some(reply) if reply.status == 200 => written(&reply.body),
            Some(reply) if reply.status == 204 => None,
            _ => return,
        };
        self.top = head.as_ref().map_or(0, |head| head.serial);
        self.head = Some((head, self.held.is_some()));
    }

    /// A state that nobody has written before.
    pub fn state(&mut self, serial: i64, lineage: Option<String>, padding: u16) -> (Written, Bytes) {
        let label = self.label();
        let lineage = lineage.unwrap_or_else(|| format!("lineage-{label}"));
        let value = format!("{label}{}", "x".repeat(padding.into()));
        let body = json!({ "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": lineage,
                           "outputs": { "value": { "value": value, "type": "string" } }, "resources": [],
                           "check_results": null })
        .to_string();
        let sha256 = Sha256Digest::of(body.as_bytes()).to_string();
        (Written { serial, lineage, sha256 }, body.into())
    }

    /// The state that follows the head, which is read first if it must be. `None`: the head is not known.
    pub async fn next_state(&mut self, step: &Step) -> Option<(Written, Bytes)> {
        let is_known = matches!(&self.head, Some((_, under_lock)) if *under_lock == self.held.is_some());
        if !is_known {
            self.read(step).await;
        }
        let (head, _) = self.head.clone().filter(|(_, under_lock)| *under_lock == self.held.is_some())?;
        self.top += 1;
        let lineage = head.map(|head| head.lineage);
        let (state, body) = self.state(self.top, lineage, step.padding);
        // Its next one follows this one, whatever becomes of it.
        if let Some((head, _)) = &mut self.head {
            head.get_or_insert_with(|| state.clone());
        }
        Some((state, body))
    }

    pub async fn write(
        &mut self,
        lock: Option<String>,
        (state, body): (Written, Bytes),
        is_next: bool,
        step: &Step,
    ) -> Option<Reply> {
        let uri = match &lock {
            Some(id) => format!("{}?ID={id}", self.base),
            None => self.base.clone(),
        };
        let operation = Operation::Write { lock: lock.clone(), state: state.clone(), is_next };
        self.last = Some((self.place, lock, state, body.clone()));
        let method = if step.pick.is_multiple_of(2) { "POST" } else { "PUT" };
        let reply = self.insist(method, &uri, &operation, &body, step).await;
        if !is_next || reply.as_ref().is_none_or(|reply| reply.status != 200) {
            self.head = None;
        }
        reply
    }

    /// What it wrote last, once more.
    pub async fn write_again(&mut self, step: &Step) {
        let Some((place, lock, state, body)) = self.last.clone() else { return };
        if place == self.place || self.held.is_none() {
            self.go_to(place);
            self.write(lock, (state, body), false, step).await;
        }
    }
}

fn lock_info(id: &str, who: &str) -> String {
    json!({ "ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": who, "Version": "1.11.4",
            "Created": "2026-01-01T00:00:00Z", "Path": "" })
    .to_string()
}
