//! What processes show of themselves while the product works: arguments to everybody, environments to root.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::scanner::{Hit, Scanner};

/// Between two looks: a process that lives shorter may be missed.
const PAUSE: Duration = Duration::from_millis(15);
const DEADLINE: Duration = Duration::from_secs(30);
const LOOKS: usize = 4;
/// Terraform, its providers and what they start have the credentials of a run by design, so their environments are not
/// searched. Their arguments are.
const HAS_CREDENTIALS: &str = "terraform";
/// The kind of such an environment.
const GIVEN: &str = "given environment";

/// What was seen, once each.
#[derive(Default)]
struct Seen {
    /// Of processes, by kind of what it is and the program's name.
    texts: HashSet<(&'static str, String, Vec<u8>)>,
    /// How often each was looked at.
    looks: BTreeMap<u32, usize>,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Seen>,
    looked: Condvar,
}

/// A look at all processes that are born from now on, again and again.
pub struct Processes {
    shared: Arc<Shared>,
    stop: Sender<()>,
    watcher: JoinHandle<()>,
}

/// Everything that was seen.
pub struct Sightings(Seen);

impl Processes {
    pub fn watch() -> Self {
        let (shared, (stop, stopped)) = (Arc::<Shared>::default(), channel());
        let watcher = std::thread::spawn({
            let shared = Arc::clone(&shared);
            // Those of others, which know nothing of this test.
            let old: BTreeSet<(u32, String)> =
                ids().filter_map(|id| stat(id).map(|stat| (id, stat.born))).collect();
            move || {
                while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                    look(&old, &shared.seen);
                    shared.looked.notify_all();
                }
            }
        });
        Self { shared, stop, watcher }
    }

    /// Returns once this process has been looked at; more than once, as it was somebody else's copy at first.
    pub fn until_seen(&self, id: u32) {
        let seen = self.shared.seen.lock().unwrap();
        let is_missing = |seen: &mut Seen| seen.looks.get(&id).is_none_or(|looks| *looks < LOOKS);
        let (seen, waited) = self.shared.looked.wait_timeout_while(seen, DEADLINE, is_missing).unwrap();
        drop(seen);
        assert!(!waited.timed_out(), "the process is not seen");
    }

    pub fn finish(self) -> Sightings {
        self.stop.send(()).unwrap();
        self.watcher.join().unwrap();
        Sightings(std::mem::take(&mut *self.shared.seen.lock().unwrap()))
    }
}

impl Sightings {
    /// The secrets in them.
    pub fn scan(&self, scanner: &Scanner) -> BTreeSet<Hit> {
        let mut hits = BTreeSet::new();
        for (kind, program, text) in self.0.texts.iter().filter(|(kind, ..)| *kind != GIVEN) {
            hits.extend(scanner.scan(&format!("{kind} of {program:?}"), text));
        }
        hits
    }

    /// The programs whose environments were seen.
    pub fn programs(&self) -> BTreeSet<&str> {
        let of = |kind: &'static str| self.0.texts.iter().filter(move |(of, ..)| *of == kind);
        of("environment").map(|(_, program, _)| program.as_str()).collect()
    }

    /// The values that a variable had in the environments of a program, if they have this text: others run it, too.
    pub fn values(&self, program: &str, variable: &str, own: &str) -> BTreeSet<String> {
        let prefix = format!("{variable}=");
        let environments = self.0.texts.iter().filter(|(kind, of, text)| {
            kind.ends_with("environment") && of == program && String::from_utf8_lossy(text).contains(own)
        });
        environments
            .flat_map(|(_, _, text)| text.split(|byte| *byte == 0))
            .filter_map(|pair| Some(std::str::from_utf8(pair).ok()?.strip_prefix(&prefix)?.to_owned()))
            .collect()
    }
}

struct Stat {
    name: String,
    parent: u32,
    born: String,
}

fn ids() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// `None` if it has ended.
fn stat(id: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (name, numbers) = text.split_once('(')?.1.rsplit_once(')')?;
    let numbers: Vec<&str> = numbers.split_whitespace().collect();
    Some(Stat {
        name: name.to_owned(),
        parent: numbers.get(1)?.parse().ok()?,
        born: (*numbers.get(19)?).into(),
    })
}

fn look(old: &BTreeSet<(u32, String)>, seen: &Mutex<Seen>) {
    let own = std::process::id();
    let all: BTreeMap<u32, Stat> =
        ids().filter(|id| *id != own).filter_map(|id| stat(id).map(|stat| (id, stat))).collect();
    for (id, stat) in all.iter().filter(|(id, stat)| !old.contains(&(**id, stat.born.clone()))) {
        let read = |what: &str| std::fs::read(format!("/proc/{id}/{what}")).unwrap_or_default();
        let (arguments, environment) = (read("cmdline"), read("environ"));
        // It became another program meanwhile: which one it was is not known.
        if self::stat(*id).is_none_or(|now| now.name != stat.name) {
            continue;
        }
        let mut seen = seen.lock().unwrap();
        *seen.looks.entry(*id).or_default() += 1;
        seen.texts.insert(("arguments", stat.name.clone(), arguments));
        let kind = if is_below(&all, *id, HAS_CREDENTIALS) { GIVEN } else { "environment" };
        seen.texts.insert((kind, stat.name.clone(), environment));
    }
}

/// Whether it is such a program, or was started by one.
fn is_below(all: &BTreeMap<u32, Stat>, mut id: u32, name: &str) -> bool {
    while let Some(stat) = all.get(&id) {
        if stat.name == name {
            return true;
        }
        id = stat.parent;
    }
    false
}
