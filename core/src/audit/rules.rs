//! The bytes that are hashed, and the walk along a chain that checks them. Pure: the same code runs in the service
//! and in an offline verifier.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::model::{ChainId, Entry};
use crate::digest::Sha256Digest;

/// The layout of [`canonical_bytes`]; a later layout gets another number.
const FORMAT: u64 = 1;

/// What stands for a NUL character, which Postgres cannot store.
const NUL_SHOWN: &str = "\u{fffd}";

/// The hash before the first entry of a chain.
pub(super) const NO_HASH: Sha256Digest = Sha256Digest([0; 32]);

/// One entry as stored, as far as the chain goes.
#[derive(Clone, Debug)]
pub struct Link<'a> {
    /// Its place in the chain.
    pub sequence: i64,
    /// What it says the entry before it hashed to.
    pub previous_hash: Sha256Digest,
    /// What it says it hashes to.
    pub hash: Sha256Digest,
    /// The bytes that were hashed.
    pub canonical: &'a [u8],
}

/// What is wrong with a chain at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A sequence number is missing or repeated.
    #[error("an entry is missing before this one")]
    Gap,
    /// The entry was chained to something else.
    #[error("the entry does not follow the one before it")]
    Link,
    /// The content was changed.
    #[error("the content does not match its hash")]
    Content,
    /// The bytes belong to another place.
    #[error("the hashed bytes name another chain or sequence")]
    Place,
    /// The columns that are searched say something else than the bytes that were hashed.
    #[error("the searchable columns differ from the hashed bytes")]
    Columns,
    /// The chain ends elsewhere than its head says.
    #[error("the chain does not end where its head says")]
    Head,
    /// A signed checkpoint names an entry that is not there, or is another one.
    #[error("a signed checkpoint names an entry that is gone or different")]
    Checkpoint,
}

/// An entry on its way into the log: its canonical bytes, but for what only the database knows under the chain's lock.
/// `before` + time + `middle` + sequence + `after`, as the SQL function `audit_append` joins them.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Whose chain.
    pub chain: Uuid,
    /// Up to the time.
    pub before: String,
    /// Between time and sequence.
    pub middle: String,
    /// From the sequence on.
    pub after: String,
}

impl Draft {
    /// The bytes of one entry: JSON without spaces, keys sorted at every depth, times in UTC with microseconds. Every
    /// field is always there, so no two entries share their bytes.
    pub fn of(entry: &Entry) -> Self {
        let chain = ChainId::of(entry.business_unit_id);
        let id = |id: Option<Uuid>| id.map_or(Value::Null, |id| id.to_string().into());
        let before = fields([
            ("action", entry.action.as_str().into()),
            ("business_unit_id", id(entry.business_unit_id.map(Uuid::from))),
            ("chain_id", chain.to_string().into()),
        ]);
        let middle = fields([
            ("details", without_nul(&entry.details)),
            ("format", FORMAT.into()),
            ("resource_id", entry.resource_id.replace('\0', NUL_SHOWN).into()),
            ("resource_type", entry.resource_type.into()),
            ("run_id", id(entry.run_id.map(Uuid::from))),
        ]);
        let after = fields([
            ("user_id", id(entry.actor.user_id().map(Uuid::from))),
            ("workspace_id", id(entry.workspace_id.map(Uuid::from))),
        ]);
        Self {
            chain: chain.0,
            before: ["{", &before, ",\"created_at\":\""].concat(),
            middle: ["\",", &middle, ",\"sequence\":"].concat(),
            after: [",", &after, "}"].concat(),
        }
    }
}

/// Fields as they stand inside a canonical object.
fn fields<const N: usize>(fields: [(&str, Value); N]) -> String {
    let object = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let text = canonical_json(&Value::Object(object));
    text[1..text.len() - 1].to_owned()
}

/// The hash of an entry that follows `previous`.
pub fn link_hash(previous: Sha256Digest, canonical: &[u8]) -> Sha256Digest {
    Sha256Digest::of(&[&previous.0[..], canonical].concat())
}

/// JSON with keys sorted at every depth and no spaces. Sorted here, not by the map type: a dependency may switch
/// `serde_json` to insertion order for the whole program.
pub(super) fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by(|a, b| a.0.cmp(b.0));
            out.push('{');
            for (n, (name, value)) in fields.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// The same value without NUL characters, which Postgres cannot store in text or JSON. What an executor reports may
/// hold them, and a record of it must not fail.
pub(super) fn without_nul(value: &Value) -> Value {
    match value {
        Value::String(text) => text.replace('\0', NUL_SHOWN).into(),
        Value::Array(items) => items.iter().map(without_nul).collect(),
        Value::Object(map) => {
            map.iter().map(|(name, value)| (name.replace('\0', NUL_SHOWN), without_nul(value))).collect()
        }
        other => other.clone(),
    }
}

/// What the canonical bytes of an entry say. Borrowed where that is possible: a long log is read whole.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "the fields of an entry")]
pub struct Fields<'a> {
    pub chain_id: Uuid,
    pub sequence: i64,
    pub created_at: DateTime<Utc>,
    pub business_unit_id: Option<Uuid>,
    pub user_id: Option<Uuid>,
    #[serde(borrow)]
    pub action: Cow<'a, str>,
    #[serde(borrow)]
    pub resource_type: Cow<'a, str>,
    #[serde(borrow)]
    pub resource_id: Cow<'a, str>,
    pub workspace_id: Option<Uuid>,
    pub run_id: Option<Uuid>,
    pub details: Value,
}

/// A walk along one chain, entry by entry, in constant memory.
#[derive(Clone, Debug)]
pub struct ChainWalk {
    chain: ChainId,
    sequence: i64,
    hash: Sha256Digest,
}

impl ChainWalk {
    /// Before the first entry.
    pub fn new(chain: ChainId) -> Self {
        Self { chain, sequence: 0, hash: NO_HASH }
    }

    /// The place after the last entry seen.
    pub fn position(&self) -> (i64, Sha256Digest) {
        (self.sequence, self.hash)
    }

    /// Checks the next entry and moves past it. Returns the entry's fields for comparison with its columns.
    pub fn step<'a>(&mut self, link: &Link<'a>) -> Result<Fields<'a>, Fault> {
        let (expected, previous) = (self.sequence + 1, self.hash);
        // Moves on even after a fault, so that one changed entry is reported once and not for all that follow.
        (self.sequence, self.hash) = (link.sequence, link.hash);
        if link.sequence != expected {
            return Err(Fault::Gap);
        }
        if link.previous_hash != previous {
            return Err(Fault::Link);
        }
        if link_hash(previous, link.canonical) != link.hash {
            return Err(Fault::Content);
        }
        let fields: Fields<'a> = serde_json::from_slice(link.canonical).map_err(|_| Fault::Content)?;
        let here = fields.chain_id == self.chain.0 && fields.sequence == link.sequence;
        if here { Ok(fields) } else { Err(Fault::Place) }
    }

    /// Checks that the chain ends where its head says.
    pub fn finish(&self, sequence: i64, hash: Sha256Digest) -> Result<(), Fault> {
        if (self.sequence, self.hash) == (sequence, hash) { Ok(()) } else { Err(Fault::Head) }
    }
}

/// Whether two JSON values are the same to a reader: `jsonb` may write a number in another way than it was sent.
pub(super) fn same_json(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_json(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| same_json(value, other)))
        }
        (a, b) => a == b,
    }
}
