//! What people and scripts see: stdout for answers, stderr for everything else.

mod ask;
mod clean;
mod progress;
mod screen;
mod table;
mod time;

pub use ask::{confirm, read_secret_line};
pub use clean::clean;
pub use progress::Progress;
pub use screen::{Screen, Tone};
pub use table::{Table, facts};
pub use time::{ago, bytes, seconds};
