//! Whether calls that overlap can be put into one order that a register allows: the search of Wing and Gong, made at
//! each answer for the calls that are open then, with what was reached before kept and never searched again.
//!
//! A call without an answer stays open for ever: it may be put anywhere after it was made, or nowhere.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;

use super::history::Tick;

/// What is read and changed.
pub trait Register {
    type State: Clone + Eq + Hash + Debug;
    type Call: PartialEq + Debug;

    /// The state after the call with the outcome that it had; `None` if it cannot have that outcome here.
    fn step(&self, state: &Self::State, call: &Self::Call) -> Option<Self::State>;

    /// Whether it never changes anything, in no state.
    fn only_looks(call: &Self::Call) -> bool;
}

/// A call with its outcome.
#[derive(Clone, Debug)]
pub struct Call<C> {
    pub from: Tick,
    /// `None`: no answer. Its `call` then says what it does if it does something.
    pub to: Option<Tick>,
    /// Without an answer: from when on it can do nothing any more, whether it did before or not.
    pub gone: Option<Tick>,
    pub call: C,
}

/// What the search found.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    AnOrder,
    /// The call that fits nowhere, with the states that were possible when its answer came.
    None {
        call: usize,
        states: Vec<String>,
    },
    /// More than the limit would have to be looked at.
    TooMany {
        call: usize,
    },
}

/// Configurations that one answer may lead through.
const CONFIGURATIONS_MAX: usize = 300_000;
const STATES_SHOWN: usize = 6;

#[derive(Clone, Debug)]
struct Configuration<S> {
    state: S,
    /// Open calls that have an answer later and are done here, in order of their index.
    done: Vec<usize>,
    /// Calls without an answer that have happened here.
    happened: Vec<usize>,
}

/// Searches for an order of the calls that begins with the state.
pub fn search<R: Register>(register: &R, initial: R::State, calls: &[Call<R::Call>]) -> Found {
    let mut moments: Vec<(Tick, bool, usize)> = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        moments.push((call.from, false, index));
        moments.extend(call.to.map(|to| (to, true, index)));
    }
    moments.sort_unstable();
    let mut search = Search { register, calls, open: Vec::new(), unanswered: Vec::new() };
    let mut reached = vec![Configuration { state: initial, done: Vec::new(), happened: Vec::new() }];
    for (now, is_answer, index) in moments {
        if !is_answer {
            search.begin(index);
            continue;
        }
        search.forget_gone(now, &mut reached);
        match search.answered(&reached, index) {
            None => return Found::TooMany { call: index },
            Some(next) if next.is_empty() => {
                let shown = reached.iter().take(STATES_SHOWN);
                let states = shown.map(|configuration| format!("{:?}", configuration.state)).collect();
                return Found::None { call: index, states };
            }
            Some(next) => reached = next,
        }
    }
    Found::AnOrder
}

struct Search<'a, R: Register> {
    register: &'a R,
    calls: &'a [Call<R::Call>],
    open: Vec<usize>,
    /// Each with the one before that does the same: of two alike only the first needs to be tried.
    unanswered: Vec<(usize, Option<usize>)>,
}

impl<R: Register> Search<'_, R> {
    fn begin(&mut self, index: usize) {
        if self.calls[index].to.is_some() {
            return self.open.push(index);
        }
        let alike = |(other, _): &&(usize, Option<usize>)| self.calls[*other].call == self.calls[index].call;
        let before = self.unanswered.iter().rev().find(alike).map(|(other, _)| *other);
        self.unanswered.push((index, before));
    }

    /// Leaves out what can do nothing any more: whether it has happened makes no difference.
    fn forget_gone(&mut self, now: Tick, reached: &mut [Configuration<R::State>]) {
        let calls = self.calls;
        let is_gone = |index: usize| calls[index].gone.is_some_and(|gone| gone < now);
        let before = self.unanswered.len();
        self.unanswered.retain(|(index, _)| !is_gone(*index));
        if self.unanswered.len() < before {
            reached.iter_mut().for_each(|reached| reached.happened.retain(|index| !is_gone(*index)));
        }
    }

    /// Every configuration in which the call is done. `None`: there are too many to look at.
    fn answered(
        &mut self,
        reached: &[Configuration<R::State>],
        index: usize,
    ) -> Option<Vec<Configuration<R::State>>> {
        let mut next = Seen::default();
        let mut seen = Seen::default();
        let mut queue: VecDeque<_> = reached.iter().cloned().collect();
        let mut looked_at = 0;
        while let Some(mut configuration) = queue.pop_front() {
            self.do_what_only_looks(&mut configuration);
            if let Some(at) = configuration.done.iter().position(|done| *done == index) {
                configuration.done.remove(at);
                next.add(configuration);
                continue;
            }
            if !seen.add(configuration.clone()) {
                continue;
            }
            looked_at += 1;
            if looked_at > CONFIGURATIONS_MAX {
                return None;
            }
            self.spread(&configuration, &mut queue);
        }
        self.open.retain(|open| *open != index);
        Some(next.into_all())
    }

    /// Whether a call without an answer may still do something.
    fn is_open(&self, index: usize) -> bool {
        self.unanswered.binary_search_by_key(&index, |(other, _)| *other).is_ok()
    }

    /// To have looked when what was seen is there is never worse than to have it to do.
    fn do_what_only_looks(&self, configuration: &mut Configuration<R::State>) {
        for open in &self.open {
            let call = &self.calls[*open].call;
            let is_to_look = R::only_looks(call) && !configuration.done.contains(open);
            if is_to_look && self.register.step(&configuration.state, call).is_some() {
                insert(&mut configuration.done, *open);
            }
        }
    }

    fn spread(&self, configuration: &Configuration<R::State>, queue: &mut VecDeque<Configuration<R::State>>) {
        for open in self.open.iter().filter(|open| !configuration.done.contains(open)) {
            if let Some(state) = self.register.step(&configuration.state, &self.calls[*open].call) {
                let mut after = Configuration { state, ..configuration.clone() };
                insert(&mut after.done, *open);
                // Before those that need more of what nobody knows.
                queue.push_front(after);
            }
        }
        let happened = &configuration.happened;
        for (call, alike) in &self.unanswered {
            let has = |call: &usize| happened.binary_search(call).is_ok();
            if has(call) || alike.is_some_and(|alike| self.is_open(alike) && !has(&alike)) {
                continue;
            }
            let after = self.register.step(&configuration.state, &self.calls[*call].call);
            if let Some(state) = after.filter(|state| *state != configuration.state) {
                let mut after = Configuration { state, ..configuration.clone() };
                insert(&mut after.happened, *call);
                queue.push_back(after);
            }
        }
    }
}

fn insert(sorted: &mut Vec<usize>, index: usize) {
    let at = sorted.partition_point(|other| *other < index);
    sorted.insert(at, index);
}

/// Configurations of which none needs more than another one of the same state.
#[derive(Debug)]
struct Seen<S>(HashMap<(S, Vec<usize>), Vec<Vec<usize>>>);

impl<S> Default for Seen<S> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<S: Clone + Eq + Hash> Seen<S> {
    /// `false` if one was there that needs no more.
    fn add(&mut self, configuration: Configuration<S>) -> bool {
        let known = self.0.entry((configuration.state, configuration.done)).or_default();
        let happened = configuration.happened;
        let is_part =
            |part: &[usize], whole: &[usize]| part.iter().all(|one| whole.binary_search(one).is_ok());
        if known.iter().any(|other| is_part(other, &happened)) {
            return false;
        }
        known.retain(|other| !is_part(&happened, other));
        known.push(happened);
        true
    }

    fn into_all(self) -> Vec<Configuration<S>> {
        let each = |((state, done), known): ((S, Vec<usize>), Vec<Vec<usize>>)| {
            known.into_iter().map(move |happened| Configuration {
                state: state.clone(),
                done: done.clone(),
                happened,
            })
        };
        self.0.into_iter().flat_map(each).collect()
    }
}
