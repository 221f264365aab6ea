//! Looks over HCL expressions without evaluating them.
//!
//! A value that is marked as HCL is written into a file between brackets. It must not be able to close them and go on
//! with another variable, so only text that is certainly one balanced expression passes. What is certain is decided
//! narrowly: a value has no variables to interpolate, so templates are refused rather than understood.

/// Deepest nesting of brackets.
const NESTING_MAX: usize = 100;

/// Refuses anything but the outside of one expression. Whether it means something is for Terraform to say.
pub fn check(text: &str) -> Result<(), &'static str> {
    // Terraform's parser and this one could differ in what ends a line.
    if text.split("\r\n").any(|line| line.contains('\r')) {
        return Err("a carriage return stands alone");
    }
    scan(text, &mut |_| {})
}

/// The contents of the quoted strings in an expression, as Terraform reads them: what a log may show one by one.
pub fn quoted_strings(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // What was scanned before an error is known all the same.
    let _ = scan(text, &mut |raw| found.push(unescape(raw)));
    found
}

fn scan(text: &str, on_string: &mut dyn FnMut(&str)) -> Result<(), &'static str> {
    let mut rest = text;
    let mut open = Vec::new();
    let mut is_blank = true;
    while let Some(next) = rest.chars().next() {
        if rest.starts_with('#') || rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        if let Some(comment) = rest.strip_prefix("/*") {
            let end = comment.find("*/").ok_or("a comment does not end")?;
            rest = &comment[end + 2..];
            continue;
        }
        if rest.starts_with("<<") {
            rest = skip_heredoc(rest)?;
            is_blank = false;
            continue;
        }
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = end_of_quoted(quoted)?;
            on_string(&quoted[..end]);
            rest = &quoted[end + 1..];
            is_blank = false;
            continue;
        }
        if matches!(next, ')' | ']' | '}') && open.pop() != Some(opening_of(next)) {
            return Err("brackets do not match");
        }
        if matches!(next, '(' | '[' | '{') {
            open.push(next);
        }
        if open.len() > NESTING_MAX {
            return Err("brackets are nested too deeply");
        }
        is_blank &= next.is_whitespace();
        rest = &rest[next.len_utf8()..];
    }
    match (open.is_empty(), is_blank) {
        (false, _) => Err("a bracket is not closed"),
        (true, true) => Err("there is no expression"),
        (true, false) => Ok(()),
    }
}

fn opening_of(closing: char) -> char {
    match closing {
        ')' => '(',
        ']' => '[',
        _ => '{',
    }
}

/// Where the quote is that ends a string which begins at `text`.
fn end_of_quoted(text: &str) -> Result<usize, &'static str> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                check_template(&text[..at])?;
                return Ok(at);
            }
            b'\n' | b'\r' => return Err("a quoted string has a line break: write \\n"),
            // What is escaped is part of the string, but no escape makes a line break one.
            b'\\' if !matches!(bytes.get(at + 1), Some(b'\n' | b'\r')) => at += 2,
            _ => at += 1,
        }
    }
    Err("a quoted string does not end")
}

/// `$${` and `%%{` are text; anything else before a brace would be evaluated.
fn check_template(text: &str) -> Result<(), &'static str> {
    for mark in ['$', '%'] {
        for (at, _) in text.match_indices([mark, '{'].iter().collect::<String>().as_str()) {
            let before = text[..at].chars().rev().take_while(|c| *c == mark).count();
            if before != 1 {
                return Err("a value has nothing to interpolate: write $${ for ${, and %%{ for %{");
            }
        }
    }
    Ok(())
}

/// What follows a here document.
fn skip_heredoc(text: &str) -> Result<&str, &'static str> {
    const SHAPE: &str = "<< must begin a here document: a word, then a new line";
    let body = text.trim_start_matches('<');
    if text.len() - body.len() != 2 {
        return Err(SHAPE);
    }
    let (marker, body) = body.split_once('\n').ok_or(SHAPE)?;
    let marker = marker.strip_prefix('-').unwrap_or(marker);
    let is_word = marker.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && marker.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_word {
        return Err(SHAPE);
    }
    let mut rest = body;
    while let Some((line, after)) = rest.split_once('\n') {
        let bare = line.trim_matches([' ', '\t']);
        if bare == marker {
            check_template(&body[..body.len() - rest.len()])?;
            return Ok(after);
        }
        if bare.starts_with(marker) || line.contains('\r') {
            return Err("a line of a here document begins like its end, or has a carriage return");
        }
        rest = after;
    }
    Err("a here document does not end with its word on a line of its own, and a new line")
}

/// The text between quotes as HCL reads it. Unknown escapes stay as they are.
fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (plain, length) = match after.chars().next() {
            Some('n') => (Some('\n'), 1),
            Some('r') => (Some('\r'), 1),
            Some('t') => (Some('\t'), 1),
            Some(quoted @ ('"' | '\\')) => (Some(quoted), 1),
            Some('u') => (code_point(after, 4), 5),
            Some('U') => (code_point(after, 8), 9),
            _ => (None, 0),
        };
        match plain {
            Some(plain) => text.push(plain),
            None => text.push('\\'),
        }
        rest = &after[if plain.is_some() { length } else { 0 }..];
    }
    text.push_str(rest);
    text.replace("$${", "${").replace("%%{", "%{")
}

fn code_point(text: &str, digits: usize) -> Option<char> {
    char::from_u32(u32::from_str_radix(text.get(1..=digits)?, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_every_kind_pass() {
        for text in [
            "1",
            "true",
            "null",
            "\"text\"",
            "[1, 2, 3]",
            "{ a = \"b\", c = [\"d\"] }",
            "{\n  a = 1 # one\n  b = 2 // two\n}\n",
            "/* both */ [ ]",
            "\"a \\\" quote and a \\\\\"",
            "\"$${literal} and %%{literal}\"",
            "\"costs 5$ and 5% {so}\"",
            "<<EOT\nline one )\n  line } two\nEOT\n",
            "[<<-EOT\n    indented\n    EOT\n, 2]",
            "[for n in [1, 2] : n]",
            "1 < 2 ? \"yes\" : \"no\"",
            "{\r\n  a = 1\r\n}\r\n",
            "{ ü = \"ü\" }",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn nothing_gets_out_of_its_brackets() {
        for text in [
            "1)\nother = (2",
            "]",
            "[1",
            "[1)",
            "\"open",
            "\"line\nbreak\"",
            "\"a\\\"",
            "/* open",
            "<<EOT\nnever ends",
            "<<EOT\nno new line after\nEOT",
            "<<EOT\nEOT;\n)\nother = (1\nEOT\n",
            "<<EOT\nEOTX\nEOT\n",
            "<<EOT\n\"\nEOT\r\n/*\nEOT\n)\nother = (1 /* */",
            "<< EOT\nx\nEOT\n",
            "<<\"EOT\"\nx\nEOT\n",
            "<<<EOT\nx\nEOT\n",
            "\"${1 + \")\"}\"",
            "\"$$${x}\"",
            "\"%{ if true }x%{ endif }\"",
            "<<EOT\n${x}\nEOT\n",
            "1 # comment\r)\rother = (",
            "",
            "  \n",
            "# only a comment",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
        let deep = ["[".repeat(101), "]".repeat(101)].concat();
        assert!(check(&deep).is_err());
    }

    #[test]
    fn quoted_strings_are_found_as_terraform_reads_them() {
        let text = r#"{ a = "one", "two" = ["th\"ree", "f\u00fcr\n", "$${x}", "\q"] }"#;
        assert_eq!(quoted_strings(text), ["one", "two", "th\"ree", "für\n", "${x}", "\\q"]);
    }
}
