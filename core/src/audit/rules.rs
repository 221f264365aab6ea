//! The bytes that are hashed, and the walk along a chain that checks them. Pure: the same code runs in the service
//! and in an offline verifier.

use std::borrow::Cow;
use std::fmt::Write as _;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::model::{ChainId, Entry};
use crate::digest::Sha256Digest;

/// The layout of an entry's bytes; a later layout gets another number.
const FORMAT: &str = ",\"format\":1";

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
        let details = facts(entry);
        Self::of_content(&Content {
            chain: ChainId::of(entry.business_unit_id),
            business_unit_id: entry.business_unit_id.map(Uuid::from),
            user_id: entry.actor.user_id().map(Uuid::from),
            action: entry.action.as_str(),
            resource_type: entry.resource_type,
            resource_id: &entry.resource_id.replace('\0', NUL_SHOWN),
            workspace_id: entry.workspace_id.map(Uuid::from),
            run_id: entry.run_id.map(Uuid::from),
            details: &details,
        })
    }

    fn of_content(content: &Content<'_>) -> Self {
        let (mut before, mut middle, mut after) = (String::new(), String::new(), String::new());
        content.write_before(&mut before);
        content.write_middle(&mut middle);
        content.write_after(&mut after);
        Self { chain: content.chain.0, before, middle, after }
    }
}

/// The details that are stored: an entry's own, and the key that was used.
pub(super) fn facts(entry: &Entry) -> Value {
    let mut details = without_nul(&entry.details);
    if let (Some(key), Value::Object(facts)) = (entry.actor.api_key_id(), &mut details) {
        facts.insert("api_key_id".into(), key.to_string().into());
    }
    details
}

/// What an entry says, wherever it is read from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content<'a> {
    pub chain: ChainId,
    pub business_unit_id: Option<Uuid>,
    pub user_id: Option<Uuid>,
    pub action: &'a str,
    pub resource_type: &'a str,
    pub resource_id: &'a str,
    pub workspace_id: Option<Uuid>,
    pub run_id: Option<Uuid>,
    pub details: &'a Value,
}

impl Content<'_> {
    /// Makes `out` the bytes of the entry at this place and time.
    pub(super) fn write(&self, sequence: i64, created_at: DateTime<Utc>, out: &mut String) {
        out.clear();
        self.write_before(out);
        out.push_str(&created_at.to_rfc3339_opts(SecondsFormat::Micros, true));
        self.write_middle(out);
        write!(out, "{sequence}").expect("a string takes everything");
        self.write_after(out);
    }

    fn write_before(&self, out: &mut String) {
        write_text(out, r#"{"action":"#, self.action);
        write_id(out, r#","business_unit_id":"#, self.business_unit_id);
        write_id(out, r#","chain_id":"#, Some(self.chain.0));
        out.push_str(r#","created_at":""#);
    }

    fn write_middle(&self, out: &mut String) {
        out.push_str(r#"","details":"#);
        write_canonical(self.details, out);
        out.push_str(FORMAT);
        write_text(out, r#","resource_id":"#, self.resource_id);
        write_text(out, r#","resource_type":"#, self.resource_type);
        write_id(out, r#","run_id":"#, self.run_id);
        out.push_str(r#","sequence":"#);
    }

    fn write_after(&self, out: &mut String) {
        write_id(out, r#","user_id":"#, self.user_id);
        write_id(out, r#","workspace_id":"#, self.workspace_id);
        out.push('}');
    }
}

/// `field` is the field's name as it stands between the value before and its own.
fn write_text(out: &mut String, field: &str, text: &str) {
    out.push_str(field);
    write_string(text, out);
}

fn write_id(out: &mut String, field: &str, id: Option<Uuid>) {
    out.push_str(field);
    match id {
        Some(id) => {
            let mut digits = Uuid::encode_buffer();
            out.push('"');
            out.push_str(id.hyphenated().encode_lower(&mut digits));
            out.push('"');
        }
        None => out.push_str("null"),
    }
}

fn write_string(text: &str, out: &mut String) {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

/// The hash of an entry that follows `previous`.
pub fn link_hash(previous: Sha256Digest, canonical: &[u8]) -> Sha256Digest {
    Sha256Digest::of_both(&previous.0, canonical)
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
                write_string(name, out);
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
        Value::String(text) => write_string(text, out),
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

    /// Which chain.
    pub fn id(&self) -> ChainId {
        self.chain
    }

    /// The place after the last entry seen.
    pub fn position(&self) -> (i64, Sha256Digest) {
        (self.sequence, self.hash)
    }

    /// Checks that the next entry follows, and moves past it.
    pub fn step(&mut self, link: &Link<'_>) -> Result<(), Fault> {
        let (expected, previous) = (self.sequence + 1, self.hash);
        // Moves on even after a fault, so that one changed entry is reported once and not for all that follow.
        (self.sequence, self.hash) = (link.sequence, link.hash);
        if link.sequence != expected {
            return Err(Fault::Gap);
        }
        if link.previous_hash != previous {
            return Err(Fault::Link);
        }
        if link_hash(previous, link.canonical) == link.hash { Ok(()) } else { Err(Fault::Content) }
    }

    /// What an entry of this chain says, if it says that it stands here.
    pub fn read<'a>(&self, link: &Link<'a>) -> Result<Fields<'a>, Fault> {
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
