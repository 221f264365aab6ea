//! The log of one step: redacted, kept on disk up to its limit, sent in chunks while it grows.
//!
//! Writing never waits for the network: a flood fills the head on disk, then only a tail in memory moves on.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::callback::Callback;
use crate::error::StepError;
use crate::log_redaction::{Redactor, Secrets};

/// Largest piece sent in one call.
const CHUNK_BYTES_MAX: usize = 256 << 10;
/// Longest time that written text waits for being sent.
const FLUSH_EVERY: Duration = Duration::from_millis(500);
/// What is kept of the end of a log that is too long.
const TAIL_BYTES_MAX: u64 = 1 << 20;
/// Room for the sentence between head and tail.
const NOTE_BYTES: u64 = 256;

/// Where a step writes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Log {
    shared: Arc<Shared>,
}

/// The log of a step and the task that sends it.
pub(crate) struct StepLog {
    log: Log,
    sender: JoinHandle<Result<(), StepError>>,
}

struct Shared {
    secrets: Arc<Secrets>,
    text: Mutex<Text>,
    more: Notify,
    closed: Notify,
}

struct Text {
    file: File,
    redactor: Redactor,
    written: u64,
    head_max: u64,
    tail: VecDeque<u8>,
    tail_max: usize,
    left_out: u64,
    is_finished: bool,
}

impl StepLog {
    /// Begins the log of the step at `position`.
    pub(crate) fn begin(
        callback: Callback,
        position: i16,
        directory: &Path,
        bytes_max: u64,
        secrets: Arc<Secrets>,
    ) -> Result<Self, StepError> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(directory.join(format!("step-{position}.log")))
            .map_err(StepError::machine("the log cannot be kept"))?;
        let tail_max = TAIL_BYTES_MAX.min(bytes_max / 4);
        let text = Text {
            file,
            redactor: Redactor::default(),
            written: 0,
            head_max: bytes_max.saturating_sub(tail_max + NOTE_BYTES),
            tail: VecDeque::new(),
            tail_max: usize::try_from(tail_max).unwrap_or(usize::MAX),
            left_out: 0,
            is_finished: false,
        };
        let log = Log {
            shared: Arc::new(Shared {
                secrets,
                text: Mutex::new(text),
                more: Notify::new(),
                closed: Notify::new(),
            }),
        };
        let sender = tokio::spawn(send(callback, position, log.clone()));
        Ok(Self { log, sender })
    }

    /// Where to write.
    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }

    /// Waits until everything is with `callback`.
    pub(crate) async fn finish(self) -> Result<(), StepError> {
        self.log.close();
        self.sender.await.unwrap_or_else(|_| Err(StepError::Transient("the log could not be sent".into())))
    }
}

impl Log {
    /// Appends raw output of a child.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let mut text = self.text();
        let mut shown = Vec::with_capacity(bytes.len());
        text.redactor.push(&self.shared.secrets, bytes, &mut shown);
        text.append(&shown);
        drop(text);
        self.shared.more.notify_one();
    }

    /// Appends a line of our own.
    pub(crate) fn line(&self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
    }

    fn close(&self) {
        let mut text = self.text();
        let mut shown = Vec::new();
        text.redactor.finish(&self.shared.secrets, &mut shown);
        text.append(&shown);
        text.append_tail();
        text.is_finished = true;
        drop(text);
        self.shared.more.notify_one();
        self.shared.closed.notify_one();
    }

    fn text(&self) -> MutexGuard<'_, Text> {
        self.shared.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The piece at an offset, and whether the log ends with it.
    fn piece(&self, offset: u64) -> std::io::Result<(Bytes, bool)> {
        let text = self.text();
        let length =
            usize::try_from(text.written.saturating_sub(offset)).unwrap_or(usize::MAX).min(CHUNK_BYTES_MAX);
        let mut piece = vec![0; length];
        text.file.read_exact_at(&mut piece, offset)?;
        let is_last = text.is_finished && offset + length as u64 >= text.written;
        Ok((piece.into(), is_last))
    }
}

impl Text {
    fn append(&mut self, shown: &[u8]) {
        let room = usize::try_from(self.head_max.saturating_sub(self.written)).unwrap_or(usize::MAX);
        let (head, rest) = shown.split_at(room.min(shown.len()));
        self.store(head);
        let dropped = (self.tail.len() + rest.len()).saturating_sub(self.tail_max);
        self.left_out += dropped as u64;
        let from_tail = dropped.min(self.tail.len());
        self.tail.drain(..from_tail);
        self.tail.extend(&rest[dropped - from_tail..]);
    }

    fn append_tail(&mut self) {
        let tail: Vec<u8> = std::mem::take(&mut self.tail).into();
        if self.left_out > 0 {
            let note = format!("\n[… {} bytes of this log were left out …]\n", self.left_out);
            self.store(note.as_bytes());
        }
        self.store(&tail);
    }

    fn store(&mut self, bytes: &[u8]) {
        match self.file.write_all(bytes) {
            Ok(()) => self.written += bytes.len() as u64,
            // A full disk costs log, never the run.
            Err(error) => tracing::warn!(%error, "a piece of log could not be kept"),
        }
    }
}

async fn send(callback: Callback, position: i16, log: Log) -> Result<(), StepError> {
    let mut offset = 0;
    loop {
        let (piece, is_last) = log.piece(offset).map_err(StepError::machine("the log cannot be read"))?;
        let is_full = piece.len() == CHUNK_BYTES_MAX;
        let end = offset + piece.len() as u64;
        if !piece.is_empty() {
            offset = callback.append_log(position, offset, piece).await?;
        }
        if is_last && offset >= end {
            return Ok(());
        }
        if !is_full && !is_last {
            log.shared.more.notified().await;
            // Many small writes become one call.
            let _ = tokio::time::timeout(FLUSH_EVERY, log.shared.closed.notified()).await;
        }
    }
}
