//! A case as data, and the words to write one.

use super::faults::Fault;
use super::target::{Favour, Methods, Who};

/// How the address of the state is written in the client's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// As the server gave it.
    Plain,
    /// With a slash at its end.
    Slash,
    /// With every slash of the path doubled.
    Doubled,
    /// With the path's letters in upper case.
    UpperCase,
    /// Of a port where nobody listens.
    Nobody,
}

/// A request that is not the client's: somebody else's, or the case's own.
#[derive(Clone, Debug)]
pub enum Request {
    /// LOCK with this id.
    Lock(&'static str),
    /// UNLOCK with this id.
    Unlock(&'static str),
    /// UNLOCK without a body.
    ForceUnlock,
    /// A write of a small state of this serial, under a lock id or none.
    Write(i64, Option<&'static str>),
    /// A read.
    Read,
}

/// One start of the client.
#[derive(Clone, Debug)]
pub struct Call {
    pub(super) client: usize,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(&'static str, String)>,
    pub(super) exit: Exit,
    pub(super) says: Vec<&'static str>,
    pub(super) trace: String,
    pub(super) faults: Vec<Fault>,
    pub(super) keeps_state: bool,
    pub(super) interrupted_at: Option<&'static str>,
    pub(super) who: Option<Who>,
    pub(super) into: Option<&'static str>,
}

/// How a client ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Code(i32),
    Killed,
}

impl Call {
    fn new(arguments: &[&str]) -> Self {
        Self {
            client: 0,
            arguments: arguments.iter().map(ToString::to_string).collect(),
            environment: Vec::new(),
            exit: Exit::Code(0),
            says: Vec::new(),
            trace: String::new(),
            faults: Vec::new(),
            keeps_state: false,
            interrupted_at: None,
            who: None,
            into: None,
        }
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// With one more variable in its environment.
    #[must_use]
    pub fn env(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }

    /// It ends with this code, 0 without.
    #[must_use]
    pub fn exits(mut self, code: i32) -> Self {
        self.exit = Exit::Code(code);
        self
    }

    /// It is killed by one of its faults.
    #[must_use]
    pub fn is_killed(mut self) -> Self {
        self.exit = Exit::Killed;
        self
    }

    /// It prints this, whatever the line breaks.
    #[must_use]
    pub fn says(mut self, text: &'static str) -> Self {
        self.says.push(text);
        self
    }

    /// These requests, and no others.
    #[must_use]
    pub fn trace(mut self, trace: &str) -> Self {
        trace.clone_into(&mut self.trace);
        self
    }

    /// With this happening to its requests.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// It leaves `errored.tfstate`; otherwise it must not.
    #[must_use]
    pub fn keeps_state(mut self) -> Self {
        self.keeps_state = true;
        self
    }

    /// It gets an interrupt once this file exists in its directory.
    #[must_use]
    pub fn interrupted_at(mut self, file: &'static str) -> Self {
        self.interrupted_at = Some(file);
        self
    }

    /// With somebody else's credentials than the case's.
    #[must_use]
    pub fn by(mut self, who: Who) -> Self {
        self.who = Some(who);
        self
    }

    /// In a directory of its own: clients are numbered from 0.
    #[must_use]
    pub fn client(mut self, number: usize) -> Self {
        self.client = number;
        self
    }

    /// What it prints goes to this file of its directory.
    #[must_use]
    pub fn into_file(mut self, file: &'static str) -> Self {
        self.into = Some(file);
        self
    }
}

/// `terraform init`.
pub(super) fn init() -> Call {
    Call::new(&["init", "-input=false"]).trace("GET 204")
}

/// `terraform apply`.
pub(super) fn apply() -> Call {
    Call::new(&["apply", "-auto-approve", "-input=false"])
}

/// `terraform plan`.
pub(super) fn plan() -> Call {
    Call::new(&["plan", "-input=false"])
}

/// Anything else.
pub(super) fn run(arguments: &[&str]) -> Call {
    Call::new(arguments)
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Runs a client to its end.
    Run(Call),
    /// Starts a client and goes on once a fault holds one of its requests.
    Start(Call),
    /// Lets the held request go, and waits for that client's end.
    Finish,
    /// A request of the case's own, and its status.
    Ask(Request, u16),
    /// Something beside the protocol.
    Favour(Favour),
    /// Writes a file into the directory of client 0.
    Write(&'static str, String),
    /// Makes another state of one that was pulled: file, file, what is added to the serial, the new lineage.
    Rewrite(&'static str, &'static str, i64, Option<&'static str>),
}

impl From<Call> for Step {
    fn from(call: Call) -> Self {
        Self::Run(call)
    }
}

/// The state at the end, as a GET shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// There is none.
    None,
    /// Of this serial.
    Serial(i64),
    /// Not looked at.
    Any,
}

/// One row of the matrix.
#[derive(Clone, Debug)]
pub struct Case {
    /// Unique.
    pub name: &'static str,
    /// Not for servers of which only the protocol is known.
    pub only_exact: bool,
    /// Only for this program.
    pub only: Option<&'static str>,
    pub(super) module: String,
    pub(super) who: Who,
    pub(super) address: Address,
    pub(super) methods: Option<Methods>,
    pub(super) steps: Vec<Step>,
    pub(super) head: Head,
    pub(super) versions: Option<usize>,
    pub(super) quarantined: usize,
    pub(super) locked_by: Option<&'static str>,
    pub(super) audit: Option<&'static str>,
}

/// A case with the module that most use.
pub(super) fn case(name: &'static str) -> Case {
    Case {
        name,
        only_exact: false,
        only: None,
        module: super::cases::ONE.to_owned(),
        who: Who::Admin,
        address: Address::Plain,
        methods: None,
        steps: Vec::new(),
        head: Head::Any,
        versions: None,
        quarantined: 0,
        locked_by: None,
        audit: None,
    }
}

impl Case {
    /// With one more step.
    #[must_use]
    pub fn step(mut self, step: impl Into<Step>) -> Self {
        self.steps.push(step.into());
        self
    }

    /// With this module.
    #[must_use]
    pub fn module(mut self, text: impl Into<String>) -> Self {
        self.module = text.into();
        self
    }

    /// With the credentials of somebody else than an admin.
    #[must_use]
    pub fn by(mut self, who: Who) -> Self {
        self.who = who;
        self
    }

    /// With another spelling of the address.
    #[must_use]
    pub fn at(mut self, address: Address) -> Self {
        self.address = address;
        self
    }

    /// With these methods, whose names the trace then has.
    #[must_use]
    pub fn methods(mut self, methods: Methods) -> Self {
        self.methods = Some(methods);
        self
    }

    /// Only where the server is Plumbline.
    #[must_use]
    pub fn only_exact(mut self) -> Self {
        self.only_exact = true;
        self
    }

    /// Only with this program.
    #[must_use]
    pub fn only(mut self, program: &'static str) -> Self {
        self.only = Some(program);
        self
    }

    /// The state at the end.
    #[must_use]
    pub fn head(mut self, head: Head) -> Self {
        self.head = head;
        self
    }

    /// How many versions the server has at the end.
    #[must_use]
    pub fn versions(mut self, count: usize) -> Self {
        self.versions = Some(count);
        self
    }

    /// How many bodies wait for a person at the end; none without.
    #[must_use]
    pub fn quarantined(mut self, count: usize) -> Self {
        self.quarantined = count;
        self
    }

    /// Whoever holds the lock at the end; nobody without.
    #[must_use]
    pub fn locked_by(mut self, id: &'static str) -> Self {
        self.locked_by = Some(id);
        self
    }

    /// What the server recorded, reads left out.
    #[must_use]
    pub fn audit(mut self, actions: &'static str) -> Self {
        self.audit = Some(actions);
        self
    }
}
