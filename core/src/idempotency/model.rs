//! Idempotency keys as plain data.

use serde_json::Value;

use crate::access::{Actor, Ctx};
use crate::digest::Sha256Digest;

/// One key of one caller, for one request.
#[derive(Clone, Debug)]
pub struct Key {
    /// Whose: see [`principal`].
    pub principal: String,
    /// What the caller sent: 1 to 255 characters.
    pub key: String,
    /// A digest of method, path and body.
    pub request: Sha256Digest,
}

/// Who and where: the same key of another caller, or in another unit, is another key.
pub fn principal(ctx: &Ctx) -> String {
    let who = match &ctx.actor {
        Actor::User { id, .. } => id.to_string(),
        Actor::Key { id, .. } => id.to_string(),
        Actor::System => "system".to_owned(),
    };
    let place = ctx.scope.unit().map_or_else(|| "all".to_owned(), |unit| unit.to_string());
    format!("{who}/{place}")
}

/// What a request was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The `Location` header.
    pub location: Option<String>,
    /// The JSON body.
    pub body: Value,
}

/// How to go on with a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Begun {
    /// Execute it, then store the answer in the same transaction.
    First,
    /// It was executed before.
    Replay(Answer),
}
