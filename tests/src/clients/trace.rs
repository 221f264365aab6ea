//! What a case expects of the requests between client and server, and how it is compared with what was recorded.
//!
//! `LOCK 200, GET 204 x2, POST?ID 409, UNLOCK 200`: each item is what was asked for, the status, and how often. `x2+` is
//! two or more. A word after the status says what the proxy did: `lost`, `refused`, `cut`, `answered`.

use anyhow::{Context as _, bail};

use super::recorded::Recorded;

/// One item of an expected trace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    what: String,
    least: usize,
    most: usize,
}

/// Whether other statuses that mean the same to a client are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// What Plumbline answers, to the digit.
    Exact,
    /// What the client takes for the same.
    AsTheClient,
}

fn parse(expected: &str) -> anyhow::Result<Vec<Item>> {
    expected.split(',').map(str::trim).filter(|item| !item.is_empty()).map(item).collect()
}

fn item(text: &str) -> anyhow::Result<Item> {
    let Some((what, times)) = text.rsplit_once(" x") else {
        return Ok(Item { what: text.to_owned(), least: 1, most: 1 });
    };
    let (times, open) = times.strip_suffix('+').map_or((times, false), |times| (times, true));
    let least = times.parse().with_context(|| format!("`{text}` does not say how often"))?;
    Ok(Item { what: what.to_owned(), least, most: if open { usize::MAX } else { least } })
}

/// Fails, with both traces, unless the recorded one is the expected one.
pub(super) fn compare(expected: &str, recorded: &[Recorded], strictness: Strictness) -> anyhow::Result<()> {
    let mut rest = recorded.iter();
    let mut next = rest.next();
    for item in parse(expected)? {
        let mut times = 0;
        while times < item.most && next.is_some_and(|one| is_same(&item.what, one, strictness)) {
            times += 1;
            next = rest.next();
        }
        if times < item.least {
            let found = next.map_or("the end".to_owned(), Recorded::to_string);
            bail!("expected `{}`, found `{found}`\n{}", item.what, both(expected, recorded));
        }
    }
    match next {
        None => Ok(()),
        Some(more) => bail!("`{more}` came on top\n{}", both(expected, recorded)),
    }
}

fn both(expected: &str, recorded: &[Recorded]) -> String {
    let recorded: Vec<String> = recorded.iter().map(Recorded::to_string).collect();
    format!("  expected: {expected}\n  recorded: {}", recorded.join(", "))
}

fn is_same(expected: &str, recorded: &Recorded, strictness: Strictness) -> bool {
    let text = recorded.to_string();
    if text == expected {
        return true;
    }
    if strictness == Strictness::Exact {
        return false;
    }
    // The same request with a status that the client treats alike. Whether it is compressed is the server's affair.
    let (expected, text) = (expected.replace(" gzip", ""), text.replace(" gzip", ""));
    let Some((operation, status)) = expected.split_once(' ') else { return false };
    let (status, mark) = status.split_once(' ').unwrap_or((status, ""));
    let Some((got_operation, got)) = text.split_once(' ') else { return false };
    let (got, got_mark) = got.split_once(' ').unwrap_or((got, ""));
    operation == got_operation && mark == got_mark && alike(operation, status, got)
}

/// Protocol knowledge: which statuses the `http` backend does not tell apart.
fn alike(operation: &str, expected: &str, got: &str) -> bool {
    let group: &[&str] = match (operation, expected) {
        ("GET", "204") => &["204", "404"],
        ("GET", "200") => &["200", "302", "307"],
        ("LOCK", "423") => &["423", "409"],
        ("POST" | "POST?ID", "200") => &["200", "201", "204"],
        // Refused is refused: servers differ in the word for it.
        ("POST" | "POST?ID" | "POST?ID=other" | "UNLOCK", "400" | "409" | "422" | "423") => {
            &["400", "409", "412", "422", "423"]
        }
        ("GET" | "LOCK" | "POST", "401" | "403") => &["401", "403"],
        _ => return false,
    };
    group.contains(&got)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(what: &[(&str, u16)]) -> Vec<Recorded> {
        what.iter().map(|(what, status)| Recorded::new(what, Some(*status), "")).collect()
    }

    #[test]
    fn a_trace_is_what_was_expected_in_its_order_and_number_and_nothing_more() {
        let seen = recorded(&[("LOCK", 200), ("GET", 204), ("GET", 204), ("UNLOCK", 200)]);
        for right in ["LOCK 200, GET 204 x2, UNLOCK 200", "LOCK 200, GET 204 x1+, UNLOCK 200"] {
            assert!(compare(right, &seen, Strictness::Exact).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "LOCK 200",
            "LOCK 200, GET 204, UNLOCK 200",
            "LOCK 200, GET 204 x3+, UNLOCK 200",
            "LOCK 200, GET 200 x2, UNLOCK 200",
            "GET 204 x2, LOCK 200, UNLOCK 200",
            "LOCK 200, GET 204 x2, UNLOCK 200, GET 200",
        ] {
            assert!(compare(wrong, &seen, Strictness::Exact).is_err(), "{wrong}");
        }
    }

    #[test]
    fn another_server_may_use_what_the_client_does_not_tell_apart_and_nothing_else() {
        let seen = recorded(&[("GET", 404), ("POST?ID", 201), ("LOCK", 409)]);
        let expected = "GET 204, POST?ID 200, LOCK 423";
        assert!(compare(expected, &seen, Strictness::AsTheClient).is_ok());
        assert!(compare(expected, &seen, Strictness::Exact).is_err());
        let seen = recorded(&[("LOCK", 201)]);
        assert!(compare("LOCK 200", &seen, Strictness::AsTheClient).is_err());
        let seen = recorded(&[("POST?ID", 301)]);
        assert!(compare("POST?ID 200", &seen, Strictness::AsTheClient).is_err());
    }
}
