//! Stdout and stderr of one call, and how they may be used.

use std::io::{IsTerminal as _, Write as _};

use super::{Progress, clean};
use crate::api::Document;
use crate::args::GlobalArgs;

/// How a word is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Went well.
    Good,
    /// Went wrong.
    Bad,
    /// Somebody has to look.
    Attention,
    /// Beside the point.
    Faint,
}

/// Where a command's words go.
#[derive(Debug)]
pub struct Screen {
    /// For scripts: documents, not tables.
    pub json: bool,
    /// Errors only on stderr.
    pub quiet: bool,
    color: bool,
    /// Columns of the terminal; `None` when stdout is a pipe or a file.
    pub width: Option<usize>,
}

impl Screen {
    /// As the flags and the terminal say.
    pub fn new(global: &GlobalArgs) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let width =
            terminal.then(terminal_size::terminal_size).flatten().map(|(width, _)| usize::from(width.0));
        let color = terminal && !global.no_color && std::env::var_os("NO_COLOR").is_none();
        Self { json: global.json, quiet: global.quiet, color, width }
    }

    /// An answer as the server wrote it. Nothing for an answer without a body.
    pub fn document(&self, document: &Document) -> anyhow::Result<()> {
        if !document.text().is_empty() {
            writeln!(std::io::stdout().lock(), "{}", document.text())?;
        }
        Ok(())
    }

    /// One or more lines of the answer for people.
    pub fn print(&self, text: &str) -> anyhow::Result<()> {
        writeln!(std::io::stdout().lock(), "{}", clean(text).trim_end())?;
        Ok(())
    }

    /// Text of a log, as it is; harmless if it goes to a terminal.
    pub fn print_log(&self, text: &str) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        if self.width.is_some() {
            out.write_all(clean(text).as_bytes())?;
        } else {
            out.write_all(text.as_bytes())?;
        }
        out.flush()?;
        Ok(())
    }

    /// A hint on stderr.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            eprintln!("{}", clean(text));
        }
    }

    /// A line on stderr that moves while something takes long.
    pub fn progress(&self) -> Progress {
        Progress::new(!self.quiet)
    }

    /// The word in the tone's colour, if colours are wanted.
    pub fn paint(&self, tone: Tone, word: &str) -> String {
        if !self.color || word.is_empty() {
            return word.into();
        }
        let code = match tone {
            Tone::Good => 32,
            Tone::Bad => 31,
            Tone::Attention => 33,
            Tone::Faint => 2,
        };
        format!("\u{1b}[{code}m{word}\u{1b}[0m")
    }

    /// A status word in the colour of what it means.
    pub fn status(&self, word: &str) -> String {
        let tone = match word {
            "applied" | "succeeded" | "done" | "planned" => Tone::Good,
            "failed" | "dead" => Tone::Bad,
            "awaiting_approval" | "blocked" => Tone::Attention,
            "cancelled" | "skipped" | "superseded" => Tone::Faint,
            _ => return word.into(),
        };
        self.paint(tone, word)
    }
}
