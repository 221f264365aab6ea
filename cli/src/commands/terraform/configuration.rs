//! Where a configuration says that its state goes. It is read as far as that takes: words, strings and braces.

use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

use anyhow::Context as _;
use serde_json::Value;

/// What a configuration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    /// Nothing: the state would be a file next to it.
    Unsaid,
    /// HTTP, and nothing about where: as the environment says.
    EmptyHttp,
    /// Another kind, or an address of its own.
    Other(String),
}

/// Reads the files that terraform would read in a directory. Another backend wins over an empty one.
pub(super) fn backend_in(directory: &Path) -> anyhow::Result<Backend> {
    let unreadable = || format!("cannot read {}", directory.display());
    let mut found = Backend::Unsaid;
    for entry in std::fs::read_dir(directory).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_ignored(&name) || !path.is_file() {
            continue;
        }
        let is_json = name.ends_with(".tf.json") || name.ends_with(".tofu.json");
        if !is_json && !name.ends_with(".tf") && !name.ends_with(".tofu") {
            continue;
        }
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        match if is_json { in_json(&text) } else { in_hcl(&text) } {
            Backend::Other(what) => return Ok(Backend::Other(format!("{name}: {what}"))),
            Backend::EmptyHttp => found = Backend::EmptyHttp,
            Backend::Unsaid => {}
        }
    }
    Ok(found)
}

/// Files of ours of other calls, and what terraform does not read.
fn is_ignored(name: &str) -> bool {
    super::override_file::is_ours(name)
        || name.starts_with('.')
        || name.ends_with('~')
        || (name.starts_with('#') && name.ends_with('#'))
}

fn in_json(text: &str) -> Backend {
    // What is no JSON terraform refuses itself.
    let root: Value = serde_json::from_str(text).unwrap_or_default();
    for block in each(&root["terraform"]) {
        if !block["cloud"].is_null() {
            return Backend::Other("cloud".into());
        }
        for backend in each(&block["backend"]) {
            if let Some((kind, config)) = backend.as_object().and_then(|kinds| kinds.iter().next()) {
                let says_nothing =
                    |config: &&Value| config.as_object().is_some_and(serde_json::Map::is_empty);
                return judge(kind, each(config).iter().all(says_nothing));
            }
        }
    }
    Backend::Unsaid
}

/// A block may be written as an object or as a list of them.
fn each(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Null => Vec::new(),
        one => vec![one],
    }
}

fn judge(kind: &str, is_empty: bool) -> Backend {
    match (kind, is_empty) {
        ("http", true) => Backend::EmptyHttp,
        ("http", false) => Backend::Other("http, with settings of its own".into()),
        (kind, _) => Backend::Other(kind.to_owned()),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Open,
    Close,
    Other,
}

fn in_hcl(text: &str) -> Backend {
    let tokens = Scanner { chars: text.chars().peekable() }.tokens();
    // The names of the blocks that are open.
    let mut open: Vec<String> = Vec::new();
    let mut found = Backend::Unsaid;
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Open => {
                let name = header(&tokens[..index]);
                if open == ["terraform"] {
                    match name.as_slice() {
                        [word] if word == "cloud" => return Backend::Other("cloud".into()),
                        [word, kind] if word == "backend" => {
                            let is_empty = tokens.get(index + 1) == Some(&Token::Close);
                            match judge(kind, is_empty) {
                                other @ Backend::Other(_) => return other,
                                said => found = said,
                            }
                        }
                        _ => {}
                    }
                }
                open.push(name.join(" "));
            }
            Token::Close => drop(open.pop()),
            Token::Word(_) | Token::Text(_) | Token::Other => {}
        }
    }
    found
}

/// The words before a brace: a block's type and labels.
fn header(before: &[Token]) -> Vec<String> {
    let words = before.iter().rev().map_while(|token| match token {
        Token::Word(text) | Token::Text(text) => Some(text.clone()),
        Token::Open | Token::Close | Token::Other => None,
    });
    let mut words: Vec<String> = words.collect();
    words.reverse();
    words
}

struct Scanner<'a> {
    chars: Peekable<Chars<'a>>,
}

impl Scanner<'_> {
    fn tokens(mut self) -> Vec<Token> {
        let mut tokens = Vec::new();
        while let Some(next) = self.chars.next() {
            match next {
                '#' => self.skip_line(),
                '/' if self.chars.peek() == Some(&'/') => self.skip_line(),
                '/' if self.chars.peek() == Some(&'*') => self.skip_comment(),
                '"' => tokens.push(Token::Text(self.text())),
                '<' if self.chars.peek() == Some(&'<') => {
                    self.skip_heredoc();
                    tokens.push(Token::Other);
                }
                '{' => tokens.push(Token::Open),
                '}' => tokens.push(Token::Close),
                // The end of a line ends what could be a block's header.
                '\n' => tokens.extend((tokens.last() != Some(&Token::Open)).then_some(Token::Other)),
                blank if blank.is_whitespace() => {}
                letter if letter.is_alphabetic() || letter == '_' => {
                    tokens.push(Token::Word(self.word(letter)))
                }
                _ => tokens.push(Token::Other),
            }
        }
        tokens
    }

    fn word(&mut self, first: char) -> String {
        let mut word = String::from(first);
        while let Some(next) = self.chars.next_if(|next| next.is_alphanumeric() || matches!(next, '_' | '-'))
        {
            word.push(next);
        }
        word
    }

    fn skip_line(&mut self) {
        while self.chars.next_if(|next| *next != '\n').is_some() {}
    }

    fn skip_comment(&mut self) {
        let mut before = ' ';
        // Beyond the star of the beginning.
        self.chars.next();
        for next in self.chars.by_ref() {
            if before == '*' && next == '/' {
                return;
            }
            before = next;
        }
    }

    /// The rest of a string; what a template in it holds may be strings again.
    fn text(&mut self) -> String {
        let mut text = String::new();
        while let Some(next) = self.chars.next() {
            match next {
                '"' => break,
                '\\' => text.extend(self.chars.next()),
                '$' | '%' if self.chars.peek() == Some(&next) => text.extend(self.chars.next()),
                '$' | '%' if self.chars.peek() == Some(&'{') => self.skip_template(),
                other => text.push(other),
            }
        }
        text
    }

    fn skip_template(&mut self) {
        let mut depth = 0;
        while let Some(next) = self.chars.next() {
            match next {
                '{' => depth += 1,
                '}' if depth == 1 => return,
                '}' => depth -= 1,
                '"' => drop(self.text()),
                _ => {}
            }
        }
    }

    fn skip_heredoc(&mut self) {
        self.chars.next();
        let _ = self.chars.next_if_eq(&'-');
        let end = self.line();
        while self.chars.peek().is_some() {
            if self.line().trim() == end.trim() {
                return;
            }
        }
    }

    fn line(&mut self) -> String {
        self.chars.by_ref().take_while(|next| *next != '\n').collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_found_wherever_it_stands() {
        let other = |kind: &str| Backend::Other(kind.to_owned());
        for (text, expected) in [
            ("", Backend::Unsaid),
            ("resource \"x\" \"y\" {}\n", Backend::Unsaid),
            ("terraform {\n  backend \"http\" {}\n}\n", Backend::EmptyHttp),
            ("terraform {\n  backend \"http\" {\n  # nothing\n  }\n}\n", Backend::EmptyHttp),
            ("terraform { backend \"s3\" { bucket = \"b\" } }", other("s3")),
            ("terraform {\n backend \"s3\" {}\n}", other("s3")),
            ("terraform {\n cloud {\n organization = \"o\"\n }\n}", other("cloud")),
            (
                "terraform {\n backend \"http\" {\n address = \"https://a\"\n }\n}",
                other("http, with settings of its own"),
            ),
            ("terraform {\n required_version = \"${\"}\"}\"\n backend \"gcs\" {}\n}", other("gcs")),
            ("# terraform { backend \"s3\" {} }\n/* terraform { backend \"s3\" {} } */", Backend::Unsaid),
            ("locals {\n a = <<-EOT\n terraform { backend \"s3\" {} }\n  EOT\n}\n", Backend::Unsaid),
            ("locals {\n a = \"terraform { backend \\\"s3\\\" {} }\"\n}\n", Backend::Unsaid),
            ("resource \"a\" \"terraform\" {\n backend \"s3\" {}\n}\n", Backend::Unsaid),
            (
                "terraform {\n required_providers {\n aws = { source = \"a/b\" }\n }\n backend \"http\" {}\n}",
                Backend::EmptyHttp,
            ),
        ] {
            assert_eq!(in_hcl(text), expected, "{text}");
        }
        for (text, expected) in [
            ("{}", Backend::Unsaid),
            (r#"{"terraform":{"backend":{"http":{}}}}"#, Backend::EmptyHttp),
            (r#"{"terraform":[{"backend":[{"s3":{"bucket":"b"}}]}]}"#, other("s3")),
            (r#"{"terraform":{"cloud":{}}}"#, other("cloud")),
        ] {
            assert_eq!(in_json(text), expected, "{text}");
        }
    }
}
