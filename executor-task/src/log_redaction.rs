//! Takes known secret values out of a stream of bytes, also when they are encoded or cut by a chunk's border.
//!
//! A safety net against accidents, not a wall against code that wants to leak.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Shorter values are not taken out: they would eat ordinary words.
const SECRET_BYTES_MIN: usize = 4;
/// Lines of a secret with many lines are taken out one by one from this length.
const SECRET_LINE_BYTES_MIN: usize = 8;
/// Longer values are taken out piece by piece; in other encodings they are known by their beginning.
const PATTERN_BYTES_MAX: usize = 4096;
/// How many passing values are kept: those before them are over.
const PASSING_MAX: usize = 8;
/// Documents of JSON within documents of JSON, as policies and definitions of containers are.
const NESTED_MAX: usize = 4;
const GO_ESCAPES: [(&str, &str); 5] =
    [("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")];
const MASK: &[u8] = b"(secret)";

/// The values to take out.
pub(crate) struct Secrets {
    lasting: Vec<Vec<u8>>,
    now: Mutex<Now>,
}

struct Now {
    passing: VecDeque<Vec<Vec<u8>>>,
    search: Arc<Search>,
}

/// The values to take out at one moment.
struct Search {
    automaton: Option<AhoCorasick>,
    patterns: Vec<Vec<u8>>,
}

impl Secrets {
    /// Values in clear; their encoded forms are added.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let lasting: Vec<Vec<u8>> = values.into_iter().flat_map(forms).collect();
        let search = Arc::new(Search::of(lasting.clone()));
        Self { lasting, now: Mutex::new(Now { passing: VecDeque::new(), search }) }
    }

    /// One more, which is worth nothing before long: a token. After some more of them it is forgotten.
    pub(crate) fn add_passing(&self, value: &str) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.passing.push_back(forms(value));
        if now.passing.len() > PASSING_MAX {
            now.passing.pop_front();
        }
        let all = self.lasting.iter().chain(now.passing.iter().flatten()).cloned().collect();
        now.search = Arc::new(Search::of(all));
    }

    fn search(&self) -> Arc<Search> {
        Arc::clone(&self.now.lock().unwrap_or_else(PoisonError::into_inner).search)
    }

    /// A text that is complete.
    pub(crate) fn redact(&self, text: &[u8]) -> Vec<u8> {
        let mut stream = Redactor::default();
        let mut out = Vec::with_capacity(text.len());
        stream.push(self, text, &mut out);
        stream.finish(self, &mut out);
        out
    }
}

impl Search {
    fn of(mut patterns: Vec<Vec<u8>>) -> Self {
        patterns.retain(|pattern| pattern.len() >= SECRET_BYTES_MIN);
        patterns.sort();
        patterns.dedup();
        let automaton = (!patterns.is_empty())
            .then(|| AhoCorasickBuilder::new().match_kind(MatchKind::LeftmostLongest).build(&patterns).ok())
            .flatten();
        Self { automaton, patterns }
    }

    /// Where the part begins that the next chunk might turn into a secret.
    fn open_end(&self, buffer: &[u8]) -> usize {
        let longest = self.patterns.iter().map(Vec::len).max().unwrap_or(0);
        let from = buffer.len().saturating_sub(longest.saturating_sub(1));
        (from..buffer.len())
            .find(|at| {
                let tail = &buffer[*at..];
                // They are sorted, so those that go on after the tail follow it.
                let next = self.patterns.partition_point(|pattern| &pattern[..] <= tail);
                self.patterns.get(next).is_some_and(|pattern| pattern.starts_with(tail))
            })
            .unwrap_or(buffer.len())
    }
}

fn forms(value: &str) -> Vec<Vec<u8>> {
    let value = value.trim_end_matches(['\n', '\r']);
    if value.len() < SECRET_BYTES_MIN {
        return Vec::new();
    }
    let mut whole = vec![value.to_owned()];
    // Each level doubles what is escaped: too much for a value that is long already.
    let nested_max = if value.len() > PATTERN_BYTES_MAX { 1 } else { NESTED_MAX };
    let mut level = whole.clone();
    for _ in 0..nested_max {
        // What Go has escaped once has none of its signs any more: this grows by one form a level.
        level = level.iter().flat_map(|text| [escaped(text), escaped_by_go(text)]).collect();
        level.sort();
        level.dedup();
        whole.extend(level.iter().cloned());
    }
    let pieces = whole.iter().flat_map(|form| form.as_bytes().chunks(PATTERN_BYTES_MAX)).map(<[u8]>::to_vec);
    let percent = percent_encoded(value);
    let lower = percent.clone().map(|text| lower_case_escapes(&text));
    let mut forms: Vec<Vec<u8>> = percent.into_iter().chain(lower).map(String::into_bytes).collect();
    forms.extend([hex::encode(value).into_bytes(), hex::encode_upper(value).into_bytes()]);
    // Inside a longer text the same value has one of three encodings; their borders mix with the neighbours'.
    for shift in 0..3 {
        let mut shifted = vec![0; shift];
        shifted.extend_from_slice(value.as_bytes());
        let (first, last) = (shift * 8_usize, shifted.len() * 8);
        for text in [STANDARD_NO_PAD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)] {
            let core = &text.as_bytes()[first.div_ceil(6)..last / 6];
            if core.len() >= SECRET_LINE_BYTES_MIN {
                forms.push(core.to_vec());
            }
        }
    }
    if value.contains('\n') {
        let lines = value.lines().map(str::trim).filter(|line| line.len() >= SECRET_LINE_BYTES_MIN);
        forms.extend(lines.map(|line| line.as_bytes().to_vec()));
    }
    forms.iter_mut().for_each(|form| form.truncate(PATTERN_BYTES_MAX));
    forms.extend(pieces);
    forms
}

/// `%2F` as `%2f`: both are in use.
fn lower_case_escapes(encoded: &str) -> String {
    let mut digits = 0;
    let lower = |c: char| match c {
        '%' => {
            digits = 2;
            c
        }
        _ if digits > 0 => {
            digits -= 1;
            c.to_ascii_lowercase()
        }
        _ => c,
    };
    encoded.chars().map(lower).collect()
}

/// As within a text of JSON or of Terraform's own language.
fn escaped(value: &str) -> String {
    let json = serde_json::Value::from(value).to_string();
    json[1..json.len() - 1].to_owned()
}

/// What Terraform's `jsonencode` escapes beyond that.
fn escaped_by_go(value: &str) -> String {
    // These come to stand in a text of JSON as they are, so what is escaped must be escaped before.
    let mut text = escaped(value);
    for (sign, code) in GO_ESCAPES {
        text = text.replace(sign, code);
    }
    text
}

/// As addresses have it, as forms have it, and as scripts write it: they do not agree on these signs.
fn percent_encoded(value: &str) -> [String; 4] {
    let encode = |kept: &str, space: &str| {
        let mut text = String::new();
        for byte in value.bytes() {
            match char::from(byte) {
                ' ' => text.push_str(space),
                sign if sign.is_ascii_alphanumeric() || kept.contains(sign) => text.push(sign),
                _ => text.push_str(&format!("%{byte:02X}")),
            }
        }
        text
    };
    [encode("-_.~", "%20"), encode("-_.~", "+"), encode("-_.*", "+"), encode("-_.!~*'()", "%20")]
}

/// The state between two chunks: at most one secret's length is held back.
#[derive(Default)]
pub(crate) struct Redactor {
    held: Vec<u8>,
}

impl Redactor {
    /// Appends what is safe to show to `out`.
    pub(crate) fn push(&mut self, secrets: &Secrets, chunk: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(chunk);
        let search = secrets.search();
        let open = search.open_end(&self.held);
        self.release(&search, open, out);
    }

    /// Nothing follows.
    pub(crate) fn finish(&mut self, secrets: &Secrets, out: &mut Vec<u8>) {
        let end = self.held.len();
        self.release(&secrets.search(), end, out);
    }

    fn release(&mut self, search: &Search, until: usize, out: &mut Vec<u8>) {
        let mut done = 0;
        if let Some(automaton) = &search.automaton {
            for found in automaton.find_iter(&self.held).take_while(|found| found.start() < until) {
                out.extend_from_slice(&self.held[done..found.start()]);
                out.extend_from_slice(MASK);
                done = found.end();
            }
        }
        if done < until {
            out.extend_from_slice(&self.held[done..until]);
            done = until;
        }
        self.held.drain(..done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_chunks(secrets: &Secrets, text: &[u8], size: usize) -> String {
        let (mut redactor, mut out) = (Redactor::default(), Vec::new());
        for chunk in text.chunks(size) {
            redactor.push(secrets, chunk, &mut out);
        }
        redactor.finish(secrets, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_secret_is_taken_out_at_every_chunk_size() {
        let secrets = Secrets::new(["hunter2-hunter2", "hunt"]);
        for size in 1..30 {
            let text = in_chunks(&secrets, b"a hunter2-hunter2 b hunter2 c hun", size);
            assert_eq!(text, "a (secret) b (secret)er2 c hun", "chunks of {size}");
        }
    }

    #[test]
    fn encoded_forms_are_taken_out_wherever_they_stand() {
        let value = "p@ss word/with+signs";
        let secrets = Secrets::new([value]);
        for lead in ["", "a", "ab", "abc"] {
            let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{lead}{value}tail"));
            let shown = in_chunks(&secrets, encoded.as_bytes(), 7);
            assert!(shown.contains("(secret)"), "{lead}: {shown}");
        }
        let percent = percent_encoded(value);
        let lower = percent.clone().map(|text| lower_case_escapes(&text));
        assert_eq!(lower[0], "p%40ss%20word%2fwith%2bsigns");
        for encoded in percent.into_iter().chain(lower).chain([hex::encode(value), hex::encode_upper(value)])
        {
            assert_eq!(in_chunks(&secrets, encoded.as_bytes(), 3), "(secret)", "{encoded}");
        }
        assert_eq!(in_chunks(&Secrets::new(["a\"b\nc12"]), br#"x a\"b\nc12 y"#, 4), "x (secret) y");
    }

    #[test]
    fn a_secret_within_documents_within_documents_is_taken_out() {
        let value = "p&ss\"wo<rd\\";
        let secrets = Secrets::new([value]);
        let mut level = vec![value.to_owned()];
        for depth in 1..=NESTED_MAX {
            level = level.iter().flat_map(|text| [escaped(text), escaped_by_go(text)]).collect();
            for text in &level {
                let shown = in_chunks(&secrets, format!("a {text} b").as_bytes(), 5);
                assert_eq!(shown, "a (secret) b", "{depth}: {text}");
            }
        }
        assert_eq!(escaped_by_go(value), r#"p\u0026ss\"wo\u003crd\\"#);
    }

    #[test]
    fn a_secret_longer_than_a_pattern_is_taken_out_to_its_end() {
        let long: String = (0..3000).map(|n| format!("{n:04}")).collect();
        let shown = in_chunks(&Secrets::new([long.as_str()]), format!("a {long} b").as_bytes(), 1000);
        assert_eq!(shown, "a (secret)(secret)(secret) b");
    }

    #[test]
    fn a_value_that_came_later_is_taken_out_and_forgotten_after_some_more() {
        let secrets = Secrets::new(["hunter2-hunter2"]);
        let (mut redactor, mut out) = (Redactor::default(), Vec::new());
        redactor.push(&secrets, b"token-0 hunter2-hunter2 tok", &mut out);
        secrets.add_passing("token-0");
        redactor.push(&secrets, b"en-0 ", &mut out);
        redactor.finish(&secrets, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "token-0 (secret) token-0 ", "what is shown is shown");
        assert_eq!(in_chunks(&secrets, b"a token-0 hunter2-hunter2", 5), "a (secret) (secret)");
        for number in 1..=PASSING_MAX {
            secrets.add_passing(&format!("token-{number}"));
        }
        assert_eq!(
            in_chunks(&secrets, b"token-0 token-1 token-8 hunter2-hunter2", 3),
            "token-0 (secret) (secret) (secret)"
        );
    }

    #[test]
    fn short_values_stay() {
        assert_eq!(in_chunks(&Secrets::new(["ab"]), b"abc ab", 2), "abc ab");
    }
}
