//! What a setting is, and what a value of one is.

use serde::Serialize;

use crate::limits::Limits;
use crate::secrets::SecretText;

/// One thing that can be set.
#[derive(Debug)]
pub struct Setting {
    /// Its key.
    pub name: &'static str,
    /// Whose values there are.
    pub level: Level,
    /// What a value must be.
    pub kind: Kind,
    /// What holds while nobody has set it.
    pub default: Fallback,
    /// What it does, for people.
    pub doc: &'static str,
}

impl Setting {
    /// Whether its values are sealed.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret(_))
    }

    /// The value that holds while nobody has set another one. A tunable's is that of the running process.
    pub fn default_value(&self, limits: &Limits) -> Option<Value> {
        match self.default {
            Fallback::Nothing => None,
            Fallback::Bool(value) => Some(Value::Bool(value)),
            Fallback::Integer(value) => Some(Value::Integer(value)),
            Fallback::Text(value) => Some(Value::Text(value.to_owned())),
            Fallback::Limit(of) => Some(Value::Integer(of(limits))),
        }
    }
}

/// To whom a setting's values belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// There is one value, changed by superadmins.
    Platform,
    /// Each business unit has its own, changed by its admins.
    Unit,
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Bool,
    /// A whole number between two, both included.
    Integer {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// A time as a whole number of the unit that the key ends with.
    Duration {
        /// The unit.
        unit: TimeUnit,
        /// The shortest, in that unit.
        min: i64,
        /// The longest, in that unit.
        max: i64,
    },
    /// One of some words.
    Word(&'static [&'static str]),
    /// A text of some form.
    Text(TextShape),
    /// An address on the web, without a password in it.
    Url,
    /// A text that nobody reads again.
    Secret(SecretShape),
}

impl Kind {
    /// The word for it on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Integer { .. } => "integer",
            Self::Duration { .. } => "duration",
            Self::Word(_) => "word",
            Self::Text(_) => "text",
            Self::Url => "url",
            Self::Secret(_) => "secret",
        }
    }

    /// The least and the greatest number.
    pub fn bounds(self) -> Option<(i64, i64)> {
        match self {
            Self::Integer { min, max } | Self::Duration { min, max, .. } => Some((min, max)),
            _ => None,
        }
    }
}

/// The unit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// `…_minutes`.
    Minutes,
    /// `…_hours`.
    Hours,
}

impl TimeUnit {
    /// How many seconds one has.
    pub fn seconds(self) -> u64 {
        match self {
            Self::Minutes => 60,
            Self::Hours => 3600,
        }
    }
}

/// What a text must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextShape {
    /// One line, not blank.
    Line,
    /// The address of a Git repository, as workspaces take it.
    Repository,
    /// A branch or tag.
    Branch,
    /// A directory of a repository.
    Directory,
    /// A host's name or address.
    Host,
    /// One e-mail address.
    Email,
    /// E-mail addresses, separated by commas.
    Emails,
    /// A currency's three capital letters.
    Currency,
    /// The name of an organisation or user at a forge.
    Organisation,
    /// What groups give: a JSON object, as a text.
    RoleMapping,
    /// A business unit's slug.
    Slug,
}

/// What a secret must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretShape {
    /// Visible characters, at least so many.
    Token {
        /// How many.
        chars_min: usize,
    },
    /// An `https` address whose path is the secret.
    HttpsUrl,
}

/// What holds while nobody has set a value.
#[derive(Clone, Copy, Debug)]
pub enum Fallback {
    /// Nothing does.
    Nothing,
    /// This.
    Bool(bool),
    /// This.
    Integer(i64),
    /// This.
    Text(&'static str),
    /// The limit that the process was started with.
    Limit(fn(&Limits) -> i64),
}

/// A value that is no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[schema(as = ConfigValue)]
pub enum Value {
    /// Of a `bool`.
    Bool(bool),
    /// Of an `integer` or a `duration`.
    Integer(i64),
    /// Of anything else.
    Text(String),
}

/// A checked value on its way into the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// As people will read it.
    Plain(Value),
    /// To be sealed.
    Secret(SecretText),
}

/// What becomes of one setting; `None` takes its value away.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub setting: &'static Setting,
    pub to: Option<Given>,
}
