//! The one monotonic clock, and what is written down by it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::history::{Event, Tick, Window};

/// Everybody writes here.
#[derive(Debug, Default)]
pub struct Chronicle {
    clock: AtomicU64,
    operations: AtomicUsize,
    is_over: AtomicBool,
    pub events: Mutex<Vec<Event>>,
    pub windows: Mutex<Vec<Window>>,
    pub faults: Mutex<BTreeMap<&'static str, usize>>,
}

impl Chronicle {
    /// The next moment.
    pub fn tick(&self) -> Tick {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    pub fn note(&self, event: Event) {
        self.operations.fetch_add(1, Ordering::SeqCst);
        self.events.lock().unwrap().push(event);
    }

    /// How many calls were made.
    pub fn operations(&self) -> usize {
        self.operations.load(Ordering::SeqCst)
    }

    pub fn count(&self, fault: &'static str) {
        *self.faults.lock().unwrap().entry(fault).or_default() += 1;
    }

    /// A fault that has begun then and is over now.
    pub fn fault(&self, what: &'static str, from: Tick) {
        self.count(what);
        let to = self.tick();
        self.windows.lock().unwrap().push(Window { from, to });
    }

    /// Nobody is to begin anything new.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    pub fn go_on(&self) {
        self.is_over.store(false, Ordering::SeqCst);
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}
