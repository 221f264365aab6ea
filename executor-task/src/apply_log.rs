//! Turns the JSON lines of `terraform apply -json` into a log for people, and remembers what was touched.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumbline_core::protocol::TouchedResource;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use crate::log_redaction::Secrets;

/// A longer line is shown as it comes.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Resources remembered.
const TOUCHED_MAX: usize = 10_000;

/// Reads the output of one apply.
#[derive(Default)]
pub(crate) struct ApplyLog {
    line: Vec<u8>,
    is_too_long: bool,
    touched: BTreeMap<String, TouchedResource>,
    news: Option<UnboundedSender<TouchedResource>>,
    secrets: Option<Arc<Secrets>>,
    summary: Option<Value>,
}

impl ApplyLog {
    /// One that tells at once what it reads about resources.
    pub(crate) fn telling(news: UnboundedSender<TouchedResource>, secrets: Arc<Secrets>) -> Self {
        Self { news: Some(news), secrets: Some(secrets), ..Self::default() }
    }

    /// Takes a piece of output and gives what to show.
    pub(crate) fn push(&mut self, bytes: &[u8], show: &mut dyn FnMut(&[u8])) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.is_too_long {
                show(piece);
                self.is_too_long = !piece.ends_with(b"\n");
                continue;
            }
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, show);
            } else if self.line.len() > LINE_BYTES_MAX {
                show(&std::mem::take(&mut self.line));
                self.is_too_long = true;
            }
        }
    }

    /// Nothing follows.
    pub(crate) fn finish(&mut self, show: &mut dyn FnMut(&[u8])) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, show);
        }
    }

    /// Resources that were, or may have been, changed, by address; and Terraform's own counts.
    pub(crate) fn into_facts(self) -> (Vec<TouchedResource>, Option<Value>) {
        (self.touched.into_values().collect(), self.summary)
    }

    fn take_line(&mut self, line: &[u8], show: &mut dyn FnMut(&[u8])) {
        match serde_json::from_slice::<Value>(line) {
            Ok(message) if message.get("@message").is_some() => {
                self.remember(&message);
                show(render(&message).as_bytes());
            }
            // Not one of terraform's lines: a crash, a provider that prints.
            Ok(_) | Err(_) => show(line),
        }
    }

    /// A text that goes into rows and answers, without what no log may show.
    fn shown(&self, text: &str) -> String {
        match &self.secrets {
            Some(secrets) => String::from_utf8_lossy(&secrets.redact(text.as_bytes())).into_owned(),
            None => text.to_owned(),
        }
    }

    fn remember(&mut self, message: &Value) {
        let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
        match text("/type") {
            Some("change_summary") => self.summary = message.get("changes").cloned(),
            Some(kind @ ("apply_start" | "apply_complete" | "apply_errored")) => {
                let (Some(address), Some(action)) = (text("/hook/resource/addr"), text("/hook/action"))
                else {
                    return;
                };
                let is_full = self.touched.len() >= TOUCHED_MAX;
                if matches!(action, "read" | "noop") || is_full || !TouchedResource::can_tell(address) {
                    return;
                }
                let is_known = kind == "apply_complete" || action != "create";
                let id = text("/hook/id_value").filter(|id| is_known && TouchedResource::can_tell(id));
                let id = id.map(|id| self.shown(id));
                let touched = TouchedResource { address: self.shown(address), action: action.to_owned(), id };
                if let Some(news) = &self.news {
                    // A closed channel means that nobody can be told.
                    news.send(touched.clone()).ok();
                }
                self.touched.insert(address.to_owned(), touched);
            }
            _ => {}
        }
    }
}

fn render(message: &Value) -> String {
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match text("/type") {
        "diagnostic" => diagnostic(message),
        "provision_progress" => format!(
            "{} ({}): {}\n",
            text("/hook/resource/addr"),
            text("/hook/provisioner"),
            text("/hook/output")
        ),
        "outputs" => outputs(message),
        _ => format!("{}\n", text("/@message")),
    }
}

fn diagnostic(message: &Value) -> String {
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let title = if text("/diagnostic/severity") == "warning" { "Warning" } else { "Error" };
    let mut shown = format!("\n{title}: {}\n", text("/diagnostic/summary"));
    if let Some(address) = message.pointer("/diagnostic/address").and_then(Value::as_str) {
        shown.push_str(&format!("  with {address}"));
        if let Some(line) = message.pointer("/diagnostic/range/start/line").and_then(Value::as_u64) {
            shown.push_str(&format!(", on {} line {line}", text("/diagnostic/range/filename")));
        }
        shown.push('\n');
    }
    if !text("/diagnostic/detail").is_empty() {
        shown.push_str(&format!("\n{}\n", text("/diagnostic/detail")));
    }
    shown.push('\n');
    shown
}

fn outputs(message: &Value) -> String {
    let mut shown = String::from("\nOutputs:\n\n");
    for (name, output) in message.get("outputs").and_then(Value::as_object).into_iter().flatten() {
        let is_sensitive = output.get("sensitive").and_then(Value::as_bool).unwrap_or(true);
        let value = if is_sensitive {
            "(sensitive value)".into()
        } else {
            output.get("value").unwrap_or(&Value::Null).to_string()
        };
        shown.push_str(&format!("{name} = {value}\n"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, ApplyLog) {
        let (mut log, mut shown) = (ApplyLog::default(), Vec::new());
        let mut show = |bytes: &[u8]| shown.extend_from_slice(bytes);
        for chunk in text.as_bytes().chunks(7) {
            log.push(chunk, &mut show);
        }
        log.finish(&mut show);
        (String::from_utf8(shown).unwrap(), log)
    }

    #[test]
    fn what_was_created_is_remembered_with_its_id_and_what_failed_without() {
        let (shown, log) = read(concat!(
            r#"{"@message":"a: Creating...","type":"apply_start","hook":{"resource":{"addr":"a"},"action":"create"}}"#,
            "\n",
            r#"{"@message":"a: Done","type":"apply_complete","hook":{"resource":{"addr":"a"},"action":"create","id_value":"i-1"}}"#,
            "\n",
            r#"{"@message":"b: Creating...","type":"apply_start","hook":{"resource":{"addr":"b"},"action":"create"}}"#,
            "\n",
            "panic: not json\n",
            r#"{"@message":"x","type":"diagnostic","diagnostic":{"severity":"error","summary":"No","detail":"Why"}}"#,
        ));
        let (touched, _) = log.into_facts();
        let ids: Vec<_> = touched.into_iter().map(|touched| (touched.address, touched.id)).collect();
        assert_eq!(ids, [("a".into(), Some("i-1".into())), ("b".into(), None)]);
        assert!(
            shown.contains("a: Done\n")
                && shown.contains("panic: not json\n")
                && shown.contains("Error: No\n")
        );
    }

    #[test]
    fn sensitive_outputs_are_not_shown() {
        let (shown, _) = read(
            r#"{"@message":"Outputs: 2","type":"outputs","outputs":{"s":{"sensitive":true,"value":"x1"},"o":{"sensitive":false,"value":"y2"}}}"#,
        );
        assert!(
            shown.contains("s = (sensitive value)") && shown.contains("o = \"y2\"") && !shown.contains("x1")
        );
    }
}
