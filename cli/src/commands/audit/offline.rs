//! Verifying an exported log with nothing but the file and the public key.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use anyhow::Context as _;
use plumbline_core::audit::{ExportWalk, PublicKey};

use crate::api::views::AuditVerdict;
use crate::args::GlobalArgs;
use crate::failure::Usage;
use crate::outcome::Outcome;
use crate::output::Screen;

/// Longest line that is read: an entry's details are a few kilobytes, a checkpoint names every chain.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// Verifies a file. Asks no server, so it needs no session.
pub fn verify_file(global: &GlobalArgs, file: &Path, keys: &[String]) -> anyhow::Result<Outcome> {
    let keys: Vec<PublicKey> = keys.iter().map(|key| read_key(key)).collect::<Result<_, _>>()?;
    let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut lines = BufReader::new(opened);
    let mut walk = ExportWalk::new(keys);
    let mut number = 0_u64;
    let mut text = String::new();
    loop {
        text.clear();
        number += 1;
        let named = || format!("{}, line {number}", file.display());
        if (&mut lines).take(LINE_BYTES_MAX).read_line(&mut text).with_context(named)? == 0 {
            break;
        }
        walk.line(text.trim_end_matches('\n')).with_context(named)?;
    }
    let found = walk.finish().with_context(|| file.display().to_string())?;
    let screen = Screen::new(global);
    if found.checkpoint.is_none() {
        screen.note(
            "The file has no checkpoint: entries that were cut off the end of a chain would not be seen.",
        );
    }
    let document = serde_json::to_string(&found)?;
    let verdict: AuditVerdict = serde_json::from_str(&document)?;
    let ok = verdict.ok;
    if screen.json {
        screen.print_log(&[&document, "\n"].concat())?;
    } else {
        super::show(&screen, verdict)?;
    }
    Ok(if ok { Outcome::Done } else { Outcome::Failed })
}

/// The key itself, or a file that has it.
fn read_key(text: &str) -> anyhow::Result<PublicKey> {
    if let Ok(key) = PublicKey::parse(text) {
        return Ok(key);
    }
    let Ok(inside) = std::fs::read_to_string(text) else {
        return Err(Usage::error(format!(
            "--public-key: {text} is neither a public key in base64 nor a file with one"
        )));
    };
    PublicKey::parse(&inside).map_err(|error| Usage::error(format!("--public-key: {text}: {error}")))
}
