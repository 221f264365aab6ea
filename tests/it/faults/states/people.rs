//! People with their own Terraform, some of them careless.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

use super::client::Client;
use super::history::{Operation, Who};
use super::script::{Act, Part, Script, Step};
use super::servers::Reply;
use super::world::World;

/// Refusals after which somebody takes the lock away from whoever has forgotten it.
const IMPATIENCE: usize = 4;

/// One person.
pub struct Person {
    client: Client,
    script: Script,
    refused: usize,
}

impl Person {
    pub fn new(world: &Arc<World>, number: usize) -> Self {
        let script = Script::new(world.cast.seed, Part::Person(number));
        Self { client: Client::person(world.clone(), number), script, refused: 0 }
    }

    pub async fn act(&mut self) {
        let step = self.script.person();
        let is_free = self.client.held.is_none();
        let world = self.client.world.clone();
        if is_free {
            let start = step.pick as usize;
            let mut places = (0..world.workspaces.len()).map(|more| (start + more) % world.workspaces.len());
            let open = places.find(|place| world.quiet[*place].try_read().is_ok());
            self.client.go_to(open.unwrap_or(start % world.workspaces.len()));
        }
        let _open = world.quiet[self.client.place].read().await;
        match step.act {
            Act::Lock | Act::WriteNext if is_free => self.lock(&step).await,
            Act::Lock | Act::Read => self.client.read(&step).await,
            Act::LockAgain => self.lock_again(&step).await,
            Act::LockOfAnother => self.of_another(&step, false).await,
            Act::View => self.api(&step, "GET", "state-lock", Operation::View).await,
            Act::WriteNext => self.write_next(&step).await,
            Act::WriteAgain => self.client.write_again(&step).await,
            Act::WriteOtherBytes | Act::WriteLower | Act::WriteOtherLineage => self.write_wrong(&step).await,
            Act::WriteWithoutLock => self.write_under(None, &step).await,
            Act::WriteUnderOldLock => {
                let old = self.client.old.iter().rev().find(|(place, _)| *place == self.client.place);
                if let Some((_, id)) = old.cloned() {
                    self.write_under(Some(id), &step).await;
                }
            }
            Act::Unlock => self.unlock(&step).await,
            Act::UnlockAgain => {
                let old = self.client.old.last().filter(|(place, _)| *place == self.client.place);
                if let Some((_, id)) = old.cloned() {
                    self.client.unlock(&id, &step).await;
                }
            }
            Act::UnlockOfAnother => self.of_another(&step, true).await,
            Act::Force => drop(self.client.force(&step).await),
            Act::Rollback => self.rollback(&step).await,
            Act::Promote => self.decide(&step, "promote").await,
            Act::Discard => self.decide(&step, "discard").await,
            Act::AcceptLineage => {
                self.api(&step, "POST", "accept-next-lineage", Operation::AcceptLineage).await;
            }
            Act::Crash => {
                if let Some(id) = self.client.held.clone() {
                    self.client.remember(&id);
                }
            }
            Act::Upload
            | Act::UploadHalf
            | Act::CommitLate
            | Act::CommitAgain
            | Act::Heartbeat
            | Act::Done => {
                unreachable!("people have no such step")
            }
        }
    }

    async fn lock(&mut self, step: &Step) {
        let id = self.client.label();
        let reply = self.client.lock(&id, true, step).await;
        if reply.is_some_and(|reply| reply.status == 423) {
            self.refused += 1;
        }
        if self.refused >= IMPATIENCE {
            self.refused = 0;
            self.client.force(step).await;
        }
    }

    /// The lock that it holds, or one that it has held, by the same id.
    async fn lock_again(&mut self, step: &Step) {
        let old = || self.client.old.iter().rev().find(|(place, _)| *place == self.client.place);
        let id = self.client.held.clone().or_else(|| old().map(|(_, id)| id.clone()));
        if let Some(id) = id {
            self.client.lock(&id, true, step).await;
        }
    }

    /// Names the lock of whoever holds it.
    async fn of_another(&mut self, step: &Step, is_unlock: bool) {
        let path = format!("workspaces/{}/state-lock", self.client.world.workspaces[self.client.place]);
        let Some(lock) = self.client.world.look(&path, step.server).await else { return };
        // Its own, with a letter more, is another one.
        let id = match lock["lock_id"].as_str() {
            Some(id) if step.pick.is_multiple_of(2) => id.to_owned(),
            _ => format!("{}-other", self.client.label()),
        };
        if is_unlock {
            self.client.unlock(&id, step).await;
        } else {
            self.client.lock(&id, false, step).await;
        }
    }

    async fn unlock(&mut self, step: &Step) {
        if let Some(id) = self.client.held.clone() {
            let reply = self.client.unlock(&id, step).await;
            if reply.is_some_and(|reply| reply.status == 200) || step.pick.is_multiple_of(2) {
                self.client.remember(&id);
            }
        }
    }

    async fn write_next(&mut self, step: &Step) {
        let Some(state) = self.client.next_state(step).await else { return };
        let lock = self.client.held.clone();
        let reply = self.client.write(lock, state, true, step).await;
        // The lock was taken away: it begins anew.
        if let (Some(reply), Some(id)) = (reply, self.client.held.clone())
            && reply.status == 409
        {
            self.client.remember(&id);
        }
    }

    /// A state that must not become the head, under whatever it holds.
    async fn write_wrong(&mut self, step: &Step) {
        if self.client.next_state(step).await.is_none() {
            return;
        }
        let Some((Some(head), _)) = self.client.head.clone() else { return };
        let (serial, lineage) = match step.act {
            Act::WriteOtherBytes => (head.serial, Some(head.lineage)),
            Act::WriteLower => ((head.serial - 1 - i64::from(step.pick % 3)).max(0), Some(head.lineage)),
            _ => (head.serial + 1, None),
        };
        let wrong = self.client.state(serial, lineage, step.padding);
        let lock = self.client.held.clone();
        self.client.write(lock, wrong, false, step).await;
    }

    async fn write_under(&mut self, lock: Option<String>, step: &Step) {
        if self.client.next_state(step).await.is_none() {
            return;
        }
        let Some((Some(head), _)) = self.client.head.clone() else { return };
        // People who write without a lock meet, with serials that differ.
        let serial = head.serial + 1 + i64::from(step.pick % 3);
        let state = self.client.state(serial, Some(head.lineage), step.padding);
        self.client.write(lock, state, false, step).await;
        self.client.head = None;
    }

    async fn api(&mut self, step: &Step, method: &'static str, path: &str, operation: Operation) {
        let workspace = self.client.world.workspaces[self.client.place];
        self.bearer(step, method, format!("workspaces/{workspace}/{path}"), operation).await;
    }

    async fn bearer(
        &self,
        step: &Step,
        method: &'static str,
        path: String,
        operation: Operation,
    ) -> Option<Reply> {
        let Who::Person(number) = self.client.who else { return None };
        let world = &self.client.world;
        let authorization = format!("Bearer {}", world.people[number]);
        let draft = super::servers::Draft {
            method,
            uri: format!("/api/v1/{path}"),
            authorization,
            content_md5: None,
            body: Bytes::new(),
        };
        let asked =
            super::world::Asked { workspace: self.client.place, who: self.client.who, operation, draft };
        world.perform(&asked, step).await
    }

    async fn pick(&self, path: &str, step: &Step, fits: impl Fn(&Value) -> bool) -> Option<Uuid> {
        let workspace = self.client.world.workspaces[self.client.place];
        let page =
            self.client.world.look(&format!("workspaces/{workspace}/{path}?limit=20"), step.server).await?;
        let ids: Vec<Uuid> = page["items"]
            .as_array()?
            .iter()
            .filter(|item| fits(item))
            .filter_map(|item| item["id"].as_str()?.parse().ok())
            .collect();
        let index = (step.pick as usize).checked_rem(ids.len())?;
        Some(ids[index])
    }

    async fn rollback(&mut self, step: &Step) {
        if let Some(from) = self.pick("state-versions", step, |version| version["is_current"] != true).await {
            let path = format!("state-versions/{from}/rollback");
            self.bearer(step, "POST", path, Operation::Rollback { from }).await;
        }
    }

    async fn decide(&mut self, step: &Step, decision: &str) {
        let Some(id) = self.pick("quarantined-states", step, |kept| kept["resolution"].is_null()).await
        else {
            return;
        };
        let operation = match decision {
            "promote" => Operation::Promote { id },
            _ => Operation::Discard { id },
        };
        self.bearer(step, "POST", format!("quarantined-states/{id}/{decision}"), operation).await;
    }
}
