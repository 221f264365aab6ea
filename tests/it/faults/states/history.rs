//! What clients saw and what the database says in the end, as plain data: the checkers look at nothing else.

use std::collections::BTreeMap;

use uuid::Uuid;

/// A moment of the one order of events.
pub type Tick = u64;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    Person(usize),
    Executor(Uuid),
}

impl Who {
    /// Whether a lock of this one may be used by another: people share theirs.
    pub fn lets(self, other: Self) -> bool {
        match (self, other) {
            (Self::Person(_), Self::Person(_)) => true,
            (Self::Executor(holder), Self::Executor(other)) => holder == other,
            _ => false,
        }
    }
}

/// A state, by what it says about itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    pub serial: i64,
    pub lineage: String,
    pub sha256: String,
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Lock {
        id: String,
    },
    Unlock {
        id: String,
    },
    ForceUnlock,
    /// Who holds the lock?
    View,
    Read,
    Write {
        lock: Option<String>,
        state: Written,
        /// It follows what its writer read or wrote under the same lock.
        is_next: bool,
    },
    Begin {
        lock: String,
        state: Written,
    },
    Put {
        upload: Uuid,
    },
    Commit {
        upload: Uuid,
        lock: String,
        state: Written,
        is_next: bool,
    },
    Rollback {
        from: Uuid,
    },
    Promote {
        id: Uuid,
    },
    Discard {
        id: Uuid,
    },
    AcceptLineage,
    /// The sweep over uploads; of every workspace.
    Sweep,
    /// The executor's process has ended, and a sweep got to know it.
    Stop {
        executor: Uuid,
    },
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Of a problem document, or what became of an upload.
    pub slug: String,
    /// The lock that is said to be held.
    pub holder: Option<String>,
    /// The body that was read, or the version that was made.
    pub state: Option<Written>,
    /// An upload, a version or a quarantined state.
    pub id: Option<Uuid>,
}

impl Answer {
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct Event {
    /// `None`: every workspace.
    pub workspace: Option<usize>,
    pub who: Who,
    pub from: Tick,
    /// `None`: nobody saw an answer. What was asked may have happened since, may still happen, or never.
    pub to: Option<Tick>,
    pub operation: Operation,
    pub answer: Option<Answer>,
}

impl Event {
    /// The answer, if it says what has become of the call: an error of the server does not.
    pub fn known(&self) -> Option<(Tick, &Answer)> {
        let answer = self.answer.as_ref().filter(|answer| answer.status < 500 && answer.status != 424)?;
        Some((self.to?, answer))
    }

    pub fn is_ok(&self) -> bool {
        self.known().is_some_and(|(_, answer)| answer.is_ok())
    }

    /// It has done what it asks for, or may have.
    pub fn may_have_happened(&self) -> bool {
        self.known().is_none_or(|(_, answer)| answer.is_ok())
    }

    /// When it was over at the latest.
    pub fn end(&self) -> Tick {
        self.known().map_or(Tick::MAX, |(to, _)| to)
    }

    pub fn is_in(&self, workspace: usize) -> bool {
        self.workspace.is_none_or(|own| own == workspace)
    }

    /// A body that it asks to make the head: the lock that it names, and the body.
    pub fn wants_head(&self) -> Option<(Option<&str>, &Written, bool)> {
        match &self.operation {
            Operation::Write { lock, state, is_next } => Some((lock.as_deref(), state, *is_next)),
            Operation::Commit { lock, state, is_next, .. } => Some((Some(lock), state, *is_next)),
            _ => None,
        }
    }

    /// The server says that its body is the head.
    pub fn is_accepted(&self) -> bool {
        match self.operation {
            Operation::Commit { .. } => self.is_ok() && self.answer.as_ref().unwrap().slug == "accepted",
            _ => self.is_ok(),
        }
    }
}

/// While it lasted, calls could fail.
#[derive(Clone, Debug)]
pub struct Window {
    pub from: Tick,
    pub to: Tick,
}

/// A row of `state_versions`.
#[derive(Clone, Debug)]
pub struct Version {
    pub id: Uuid,
    pub workspace: usize,
    pub state: Written,
    pub generation: i64,
    pub rolled_back_from: Option<Uuid>,
    /// The object store has exactly its bytes.
    pub has_body: bool,
}

/// A change of a row of `tfstates`, in the order of the commits.
#[derive(Clone, Debug)]
pub struct Move {
    pub workspace: usize,
    pub generation: i64,
    pub lock: Option<String>,
    pub head: Option<Uuid>,
}

/// A row of `quarantined_states`.
#[derive(Clone, Debug)]
pub struct Kept {
    pub id: Uuid,
    pub workspace: usize,
    pub state: Written,
    pub has_body: bool,
}

/// What the audit log says of a workspace.
#[derive(Clone, Debug)]
pub struct Entry {
    pub workspace: usize,
    pub action: String,
    pub version: Option<Uuid>,
    pub lock: Option<String>,
}

/// The whole.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub workspaces: usize,
    pub events: Vec<Event>,
    pub windows: Vec<Window>,
    /// Faults, by what they were.
    pub faults: BTreeMap<&'static str, usize>,
    /// In the order of their ids, as people see them.
    pub versions: Vec<Version>,
    pub moves: Vec<Move>,
    pub kept: Vec<Kept>,
    pub audit: Vec<Entry>,
    /// What the service says of a chain that does not verify.
    pub chain_fault: Option<String>,
    /// What should be over when everything has settled, and is not.
    pub left_over: Vec<String>,
}

impl History {
    pub fn of(&self, workspace: usize) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.is_in(workspace))
    }

    pub fn version(&self, id: Uuid) -> Option<&Version> {
        self.versions.iter().find(|version| version.id == id)
    }

    /// The heads of a workspace, in the order in which they were.
    pub fn heads(&self, workspace: usize) -> Vec<&Version> {
        let mut heads: Vec<&Version> = Vec::new();
        for step in self.moves.iter().filter(|step| step.workspace == workspace) {
            let Some(version) = step.head.and_then(|id| self.version(id)) else { continue };
            if heads.last().is_none_or(|last| last.id != version.id) {
                heads.push(version);
            }
        }
        heads
    }

    /// How often the audit log has an action with which this holds.
    pub fn entries(&self, action: &str, fits: impl Fn(&Entry) -> bool) -> usize {
        self.audit.iter().filter(|entry| entry.action == action && fits(entry)).count()
    }
}
