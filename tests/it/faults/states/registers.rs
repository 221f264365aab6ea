//! The lock and the head of a workspace as registers, and the calls of a history about them.

use std::collections::BTreeMap;

use super::history::{Answer, Entry, Event, History, Operation, Tick, Who, Written};
use super::linear::{Call, Found, Register, search};

/// The lock.
#[derive(Debug)]
pub struct Lock;

/// Who holds it; and if nobody does, who gave it back last, who may do so again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LockState {
    pub held: Option<(String, Who)>,
    pub last: Option<String>,
}

/// A call about the lock with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum LockCall {
    Take(String, Who),
    Refused {
        id: String,
        who: Who,
        holder: String,
    },
    GiveBack(String, Who),
    NotTheHolder(String, Who),
    /// It cannot be given back before an upload is resolved.
    Unresolved(String),
    Force,
    NothingToForce,
    HolderLives,
    /// What the executor holds is freed.
    Stop(Who),
    See(Option<String>),
}

impl Register for Lock {
    type State = LockState;
    type Call = LockCall;

    fn step(&self, state: &LockState, call: &LockCall) -> Option<LockState> {
        let LockState { held, last } = state;
        let is_of =
            |id: &str, who: Who| held.as_ref().is_some_and(|(own, holder)| own == id && holder.lets(who));
        let is_held_as = |id: &str| held.as_ref().is_some_and(|(own, _)| own == id);
        let unchanged = |holds: bool| holds.then(|| state.clone());
        match call {
            LockCall::Take(id, who) if held.is_none() => {
                Some(LockState { held: Some((id.clone(), *who)), last: None })
            }
            LockCall::Take(id, who) => unchanged(is_of(id, *who)),
            LockCall::Refused { id, who, holder } => unchanged(is_held_as(holder) && !is_of(id, *who)),
            LockCall::GiveBack(id, who) if is_of(id, *who) => {
                Some(LockState { held: None, last: Some(id.clone()) })
            }
            LockCall::GiveBack(id, _) => unchanged(held.is_none() && last.as_ref() == Some(id)),
            LockCall::NotTheHolder(id, who) => {
                unchanged(!is_of(id, *who) && (held.is_some() || last.as_ref() != Some(id)))
            }
            LockCall::Unresolved(id) => unchanged(is_held_as(id)),
            LockCall::Force => matches!(held, Some((_, Who::Person(_)))).then(LockState::default),
            LockCall::NothingToForce => unchanged(held.is_none()),
            LockCall::HolderLives => unchanged(matches!(held, Some((_, Who::Executor(_))))),
            LockCall::Stop(who) => match held {
                Some((_, holder)) if holder == who => Some(LockState::default()),
                _ => Some(state.clone()),
            },
            LockCall::See(holder) => unchanged(held.as_ref().map(|(id, _)| id) == holder.as_ref()),
        }
    }

    fn only_looks(call: &LockCall) -> bool {
        !matches!(call, LockCall::Take(..) | LockCall::GiveBack(..) | LockCall::Force | LockCall::Stop(_))
    }
}

fn lock_call(event: &Event) -> Option<LockCall> {
    let who = event.who;
    let Some((_, answer)) = event.known() else {
        return match &event.operation {
            Operation::Lock { id } => Some(LockCall::Take(id.clone(), who)),
            Operation::Unlock { id } => Some(LockCall::GiveBack(id.clone(), who)),
            Operation::ForceUnlock => Some(LockCall::Force),
            Operation::Stop { executor } => Some(LockCall::Stop(Who::Executor(*executor))),
            _ => None,
        };
    };
    // Whatever is refused for the lock names its holder.
    let seen =
        || answer.holder.clone().filter(|_| answer.status == 423).map(|holder| LockCall::See(Some(holder)));
    match (&event.operation, answer.status, answer.slug.as_str()) {
        (Operation::Lock { id }, 200, _) => Some(LockCall::Take(id.clone(), who)),
        (Operation::Lock { id }, 423, _) => {
            let holder = answer.holder.clone().unwrap_or_default();
            Some(LockCall::Refused { id: id.clone(), who, holder })
        }
        (Operation::Unlock { id }, 200, _) => Some(LockCall::GiveBack(id.clone(), who)),
        (Operation::Unlock { id }, _, "not-the-holder") => Some(LockCall::NotTheHolder(id.clone(), who)),
        (Operation::Unlock { id }, _, "upload-unresolved") => Some(LockCall::Unresolved(id.clone())),
        (Operation::ForceUnlock, 200, _) => Some(LockCall::Force),
        (Operation::ForceUnlock, _, "state-not-locked") => Some(LockCall::NothingToForce),
        (Operation::ForceUnlock, _, "holder-may-live") => Some(LockCall::HolderLives),
        (Operation::Stop { executor }, ..) => Some(LockCall::Stop(Who::Executor(*executor))),
        (Operation::View, 200, _) => Some(LockCall::See(answer.holder.clone())),
        (Operation::Write { .. } | Operation::Rollback { .. } | Operation::Promote { .. }, ..) => seen(),
        _ => None,
    }
}

fn timed<C>(event: &Event, call: C) -> Call<C> {
    Call { from: event.from, to: event.known().map(|(to, _)| to), gone: None, call }
}

/// The calls about the lock of a workspace.
pub fn lock_calls(history: &History, workspace: usize) -> Vec<Call<LockCall>> {
    let call = |event: &Event| Some(timed(event, lock_call(event)?));
    let mut calls: Vec<_> = history
        .of(workspace)
        .filter(|event| left_a_trace(history, workspace, event))
        .filter_map(call)
        .collect();
    forget_what_was_seen(history, workspace, &mut calls);
    calls
}

/// A lock that was taken once is not taken again by a call without an answer, once it was seen, and not given back again
/// once that was heard; and no lock is, once another one was seen that was taken later, by the order of the audit log.
fn forget_what_was_seen(history: &History, workspace: usize, calls: &mut [Call<LockCall>]) {
    let (mut held, mut back) = (BTreeMap::new(), BTreeMap::new());
    let note = |seen: &mut BTreeMap<String, Tick>, id: &String, to: Tick| {
        seen.entry(id.clone()).and_modify(|first| *first = to.min(*first)).or_insert(to);
    };
    for (to, call) in calls.iter().filter_map(|call| Some((call.to?, &call.call))) {
        let seen = match call {
            LockCall::Take(id, _) | LockCall::GiveBack(id, _) | LockCall::Unresolved(id) => Some(id),
            LockCall::Refused { holder, .. } => Some(holder),
            LockCall::See(holder) => holder.as_ref(),
            _ => None,
        };
        seen.into_iter().for_each(|id| note(&mut held, id, to));
        if let LockCall::GiveBack(id, _) = call {
            note(&mut back, id, to);
        }
    }
    let is_taking = |entry: &&Entry| entry.workspace == workspace && entry.action == "state.lock";
    let taken: Vec<&String> =
        history.audit.iter().filter(is_taking).filter_map(|entry| entry.lock.as_ref()).collect();
    let mut times = BTreeMap::new();
    taken.iter().for_each(|id| *times.entry(*id).or_insert(0) += 1);
    let mut next_seen = Tick::MAX;
    let mut later = BTreeMap::new();
    for id in taken.iter().rev() {
        // Of one that was taken again, when it was taken last.
        later.entry((*id).clone()).or_insert(next_seen);
        if times[*id] == 1 {
            next_seen = next_seen.min(held.get(*id).copied().unwrap_or(Tick::MAX));
        }
    }
    for call in calls.iter_mut().filter(|call| call.to.is_none()) {
        let (id, seen) = match &call.call {
            LockCall::Take(id, _) => (id, &held),
            LockCall::GiveBack(id, _) => (id, &back),
            _ => continue,
        };
        let seen = seen.get(id).filter(|_| times.get(id) == Some(&1));
        call.gone = later.get(id).map(|later| seen.map_or(*later, |seen| *seen.min(later)));
    }
}

/// A call without an answer that took, gave back or took away a lock is in the audit log. If it is not there, it has
/// not happened; if it has, and the log lacks it, then whoever saw its effect cannot be put into any order.
fn left_a_trace(history: &History, workspace: usize, event: &Event) -> bool {
    let has = |action: &str, id: Option<&String>| {
        history.entries(action, |entry| {
            entry.workspace == workspace && (id.is_none() || entry.lock.as_ref() == id)
        }) > 0
    };
    event.known().is_some()
        || match &event.operation {
            Operation::Lock { id } => has("state.lock", Some(id)),
            Operation::Unlock { id } => has("state.unlock", Some(id)),
            Operation::ForceUnlock => has("state.force_unlock", None),
            _ => true,
        }
}

/// The head. What a state says about itself is known for all that were written.
#[derive(Debug, Default)]
pub struct Head(BTreeMap<String, (i64, String)>);

impl Head {
    /// With serial and lineage by digest.
    pub fn knowing(states: impl Iterator<Item = (String, (i64, String))>) -> Self {
        Self(states.collect())
    }
}

/// A call about the head with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum HeadCall {
    Read(Option<String>),
    Set(String),
    /// It has become the head, then or before: the same commit once more answers the same.
    Committed(String),
}

impl Register for Head {
    /// The digest of the newest version.
    type State = Option<String>;
    type Call = HeadCall;

    fn step(&self, state: &Option<String>, call: &HeadCall) -> Option<Option<String>> {
        match (call, state) {
            (HeadCall::Read(seen), _) => (seen == state).then(|| state.clone()),
            (HeadCall::Committed(_), None) => None,
            (HeadCall::Committed(body), Some(head)) => {
                let (serial, lineage) = self.0.get(body)?;
                let (last, same) = self.0.get(head)?;
                (body == head || lineage != same || last > serial).then(|| state.clone())
            }
            (HeadCall::Set(body), None) => Some(Some(body.clone())),
            (HeadCall::Set(body), Some(head)) if body == head => Some(state.clone()),
            (HeadCall::Set(body), Some(head)) => {
                let (serial, lineage) = self.0.get(body)?;
                let (last, same) = self.0.get(head)?;
                (lineage != same || serial > last).then(|| Some(body.clone()))
            }
        }
    }

    fn only_looks(call: &HeadCall) -> bool {
        !matches!(call, HeadCall::Set(_))
    }
}

fn head_call(event: &Event) -> Option<HeadCall> {
    let (_, answer) = event.known()?;
    let digest = |answer: &Answer| answer.state.as_ref().map(|state| state.sha256.clone());
    match &event.operation {
        Operation::Read if answer.is_ok() => Some(HeadCall::Read(digest(answer))),
        Operation::Rollback { .. } | Operation::Promote { .. } if answer.is_ok() => {
            Some(HeadCall::Set(digest(answer)?))
        }
        Operation::Commit { state, .. } if event.is_accepted() => {
            Some(HeadCall::Committed(state.sha256.clone()))
        }
        _ if event.is_accepted() => Some(HeadCall::Set(event.wants_head()?.1.sha256.clone())),
        _ => None,
    }
}

/// The calls about the head of a workspace.
pub fn head_calls(history: &History, workspace: usize) -> (Head, Vec<Call<HeadCall>>) {
    let mut head = Head::default();
    let mut know = |state: &Written| {
        head.0.insert(state.sha256.clone(), (state.serial, state.lineage.clone()));
    };
    for event in history.of(workspace) {
        event.wants_head().into_iter().for_each(|(_, state, _)| know(state));
        event.answer.iter().filter_map(|answer| answer.state.as_ref()).for_each(&mut know);
    }
    let versions = || history.versions.iter().filter(|version| version.workspace == workspace);
    versions().for_each(|version| know(&version.state));
    let mut calls: Vec<_> =
        history.of(workspace).filter_map(|event| Some(timed(event, head_call(event)?))).collect();
    let mut seen = BTreeMap::new();
    for (to, call) in calls.iter().filter_map(|call| Some((call.to?, &call.call))) {
        // What is told to be committed may have been replaced, but it was there.
        let (HeadCall::Read(Some(body)) | HeadCall::Set(body) | HeadCall::Committed(body)) = call else {
            continue;
        };
        seen.entry(body.clone()).and_modify(|first: &mut Tick| *first = to.min(*first)).or_insert(to);
    }
    // Versions that may have been made by a call without an answer, or by a sweep, whoever was told of them later.
    for version in versions() {
        let set = HeadCall::Set(version.state.sha256.clone());
        let is_silent =
            |event: &&Event| event.known().is_none() || matches!(event.operation, Operation::Begin { .. });
        let asked = asked_for(history, workspace, version).filter(is_silent).map(|event| event.from).min();
        let is_told = calls.iter().any(|call| call.call == set);
        if asked.is_some() || !is_told {
            let is_alone = versions().filter(|other| other.state.sha256 == version.state.sha256).count() == 1;
            let gone = seen.get(&version.state.sha256).copied().filter(|_| is_alone);
            calls.push(Call { from: asked.unwrap_or(0), to: None, gone, call: set });
        }
    }
    (head, calls)
}

/// The calls that can have made a version.
pub fn asked_for<'h>(
    history: &'h History,
    workspace: usize,
    version: &'h super::history::Version,
) -> impl Iterator<Item = &'h Event> {
    let is_promoted = history.entries("state.promote", |entry| entry.version == Some(version.id)) > 0;
    // One body can be rolled back to many times: an answer names the version that it made.
    let may_be_of =
        |event: &Event| event.known().and_then(|(_, answer)| answer.id).is_none_or(|made| made == version.id);
    history.of(workspace).filter(move |event| {
        event.may_have_happened()
            && match &event.operation {
                Operation::Rollback { from } => version.rolled_back_from == Some(*from) && may_be_of(event),
                Operation::Promote { .. } => is_promoted && may_be_of(event),
                // A sweep commits what was begun, whoever commits it then.
                Operation::Begin { state, .. } => *state == version.state,
                _ => event.wants_head().is_some_and(|(_, state, _)| *state == version.state),
            }
    })
}

/// Whether the calls about the lock fit into one order.
pub fn check_locks(history: &History) -> Vec<String> {
    each_workspace(history, |workspace| {
        let calls = lock_calls(history, workspace);
        told(&search(&Lock, LockState::default(), &calls), &calls)
    })
}

/// Whether the calls about the head fit into one order.
pub fn check_heads(history: &History) -> Vec<String> {
    each_workspace(history, |workspace| {
        let (head, calls) = head_calls(history, workspace);
        told(&search(&head, None, &calls), &calls)
    })
}

fn each_workspace(history: &History, check: impl Fn(usize) -> Option<String>) -> Vec<String> {
    let told = |workspace| check(workspace).map(|what| format!("workspace {workspace}: {what}"));
    (0..history.workspaces).filter_map(told).collect()
}

fn told<C: std::fmt::Debug>(found: &Found, calls: &[Call<C>]) -> Option<String> {
    match found {
        Found::AnOrder => None,
        Found::None { call, states } => {
            Some(format!("{:?} fits nowhere; before it {}", calls[*call], states.join(" or ")))
        }
        Found::TooMany { call } => Some(format!("undecided at {:?}: too much is possible", calls[*call])),
    }
}
