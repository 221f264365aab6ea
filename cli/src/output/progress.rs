//! What goes on, on stderr: a moving line at a terminal, plain lines elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::clean;

const TICK: Duration = Duration::from_millis(120);

/// A line that moves while something takes long. Gone when dropped.
#[derive(Debug)]
pub struct Progress {
    wanted: bool,
    bar: ProgressBar,
}

impl Progress {
    pub(super) fn new(wanted: bool) -> Self {
        // Hides itself when stderr is not a terminal.
        let bar = if wanted { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Self { wanted, bar }
    }

    /// What the moving line says now.
    pub fn now(&self, text: &str) {
        self.bar.set_message(clean(text).replace('\n', " "));
    }

    /// A line that stays, above the moving one.
    pub fn line(&self, text: &str) {
        if self.wanted {
            self.bar.suspend(|| eprintln!("{}", clean(text).trim_end()));
        }
    }

    /// Does something to stdout while the moving line is away.
    pub fn aside<T>(&self, f: impl FnOnce() -> T) -> T {
        self.bar.suspend(f)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
