//! Bodies that are no states, and writes that HTTP itself breaks: refused with a reason, and the head is what it was.

use http::StatusCode;
use serde_json::{Value, json};

use super::socket::Socket;
use crate::plane::slug;
use crate::store::state_client::{Backend, md5_of, state};

const LINEAGE: &str = "l";

/// The state of serial 6 with something else in it: with a head of serial 5, only that is wrong.
fn next_with(field: &str, value: &Value) -> Vec<u8> {
    let mut next: Value = serde_json::from_str(&state(6, LINEAGE, "next")).unwrap();
    next[field] = value.clone();
    next.to_string().into_bytes()
}

fn next_with_text(from: &str, to: &str) -> Vec<u8> {
    let next = state(6, LINEAGE, "next");
    assert!(next.contains(from), "{next}");
    next.replace(from, to).into_bytes()
}

fn nested(levels: usize) -> Vec<u8> {
    let deep = ["[".repeat(levels), "]".repeat(levels)].concat();
    next_with_text(r#""check_results":null"#, &format!(r#""check_results":{deep}"#))
}

/// What is wrong, the body, the status and the slug of the answer.
fn bad_bodies() -> Vec<(&'static str, Vec<u8>, u16, &'static str)> {
    let plan = json!({ "format_version": "1.2", "terraform_version": "1.11.4", "planned_values": {},
                       "resource_changes": [], "prior_state": {}, "configuration": {} });
    let shown =
        json!({ "format_version": "1.0", "terraform_version": "1.11.4", "values": { "root_module": {} } });
    let million = |text: &str| text.repeat((1 << 20) / text.len());
    let good = state(6, LINEAGE, "next").into_bytes();
    let mut cut = good.clone();
    cut.truncate(cut.len() / 2);
    let bad = "bad-state";
    vec![
        ("nothing", Vec::new(), 400, bad),
        ("white space", b" \r\n\t".to_vec(), 400, bad),
        ("an empty object", b"{}".to_vec(), 400, bad),
        ("a list", b"[]".to_vec(), 400, bad),
        ("a number", b"7".to_vec(), 400, bad),
        ("null", b"null".to_vec(), 400, bad),
        ("1 MB of a list", format!("[{}1]", million("1,")).into_bytes(), 400, bad),
        ("1 MB of an object", json!({ "a": million("x") }).to_string().into_bytes(), 400, bad),
        ("1 MB of opening brackets", million("[").into_bytes(), 400, bad),
        ("1 MB of opened objects", million(r#"{"a":"#).into_bytes(), 400, bad),
        ("a plan file", b"PK\x03\x04\x14\x00\x08\x00\x08\x00tfplan".to_vec(), 400, bad),
        ("a plan as JSON", plan.to_string().into_bytes(), 400, bad),
        ("show -json", shown.to_string().into_bytes(), 400, bad),
        ("invalid UTF-8", [&good[..20], b"\xff\xfe", &good[20..]].concat(), 400, bad),
        ("UTF-16", good.iter().flat_map(|byte| [*byte, 0]).collect(), 400, bad),
        ("a byte order mark", ["\u{feff}".as_bytes(), &good].concat(), 400, bad),
        ("NUL at the end", [&good[..], b"\0"].concat(), 400, bad),
        ("NUL in the middle", next_with_text(r#","serial""#, ",\0\"serial\""), 400, bad),
        ("half a state", cut, 400, bad),
        ("something after the state", [&good[..], b"x"].concat(), 400, bad),
        ("two states", [&good[..], &good].concat(), 400, bad),
        ("100,000 levels", nested(100_000), 400, bad),
        ("10,001 levels", nested(10_000), 400, bad),
        ("serial twice", next_with_text(r#""serial":6"#, r#""serial":6,"serial":7"#), 400, bad),
        ("lineage twice", next_with_text(r#""lineage":"l""#, r#""lineage":"l","lineage":"m""#), 400, bad),
        ("a huge serial", next_with_text(r#""serial":6"#, r#""serial":99999999999999999999999"#), 400, bad),
        ("the largest serial", next_with("serial", &json!(i64::MAX)), 400, bad),
        ("a negative serial", next_with("serial", &json!(-1)), 400, bad),
        ("a serial with a fraction", next_with("serial", &json!(6.5)), 400, bad),
        ("a serial with an exponent", next_with_text(r#""serial":6"#, r#""serial":6e2"#), 400, bad),
        ("a serial as a text", next_with("serial", &json!("6")), 400, bad),
        ("no serial", next_with("serial", &Value::Null), 400, bad),
        ("version 3", next_with("version", &json!(3)), 400, bad),
        ("version 5", next_with("version", &json!(5)), 400, bad),
        ("version as a text", next_with("version", &json!("4")), 400, bad),
        ("no version", next_with("version", &Value::Null), 400, bad),
        ("an empty lineage", next_with("lineage", &json!("")), 400, bad),
        ("a lineage of 300 characters", next_with("lineage", &json!("l".repeat(300))), 400, bad),
        ("control characters in the lineage", next_with("lineage", &json!("l\u{1b}[31m\n")), 400, bad),
        (
            "half a surrogate in the lineage",
            next_with_text(r#""lineage":"l""#, r#""lineage":"\ud800""#),
            400,
            bad,
        ),
        ("a lineage as a number", next_with("lineage", &json!(7)), 400, bad),
        ("another lineage", next_with("lineage", &json!("of something else")), 409, "state-refused"),
        ("a lower serial", state(4, LINEAGE, "old").into_bytes(), 409, "state-refused"),
        ("the same serial", state(5, LINEAGE, "other bytes").into_bytes(), 409, "state-quarantined"),
    ]
}

#[tokio::test]
async fn no_bad_body_is_stored_or_a_server_error_and_each_is_told_why() {
    let backend = Backend::start().await;
    let head = state(5, LINEAGE, "head");
    assert_eq!(backend.write(None, &head).await.0, StatusCode::OK);
    for locked in [false, true] {
        if locked {
            assert_eq!(backend.lock("mine").await.0, StatusCode::OK);
        }
        let path = backend.path() + if locked { "?ID=mine" } else { "" };
        for (what, body, status, expected) in bad_bodies() {
            let (found, _, answer) = backend.send_as(&backend.token, "POST", &path, body).await;
            let problem: Value = serde_json::from_slice(&answer).unwrap_or_default();
            assert_eq!((found.as_u16(), slug(&problem)), (status, expected), "{what}: {problem}");
            assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{what}: {problem}");
            let (_, _, read) = backend.read().await;
            assert_eq!(read, head, "{what}");
        }
    }
    assert_eq!(backend.versions().await.len(), 1);
    let kept = backend.quarantined().await;
    assert_eq!(
        (kept.len(), &kept[0]["reason"]),
        (1, &json!("same_serial")),
        "the only one that could be a state"
    );
    // What is odd and right is stored as it came.
    for (serial, odd) in
        [(7, format!("\n\t {} \n", state(7, LINEAGE, "spaces"))), (8, state(8, LINEAGE, "\u{feff}\\\"{["))]
    {
        assert_eq!(backend.write(Some("mine"), &odd).await.0, StatusCode::OK, "{serial}");
        assert_eq!(backend.read().await.2, odd);
    }
}

#[tokio::test]
async fn a_write_is_stored_whole_or_not_at_all_however_http_carries_it() {
    let backend = Backend::start().await;
    let socket = Socket::of(&backend).await;
    let head = state(5, LINEAGE, "head");
    assert_eq!(backend.write(None, &head).await.0, StatusCode::OK);
    let next = state(6, LINEAGE, "next").into_bytes();
    let line = format!("POST {}", backend.path());
    let length = |bytes: usize| format!("content-length: {bytes}");
    let chunk = |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let gzip = {
        use std::io::Write as _;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&next).unwrap();
        encoder.finish().unwrap()
    };
    let (half, exact) = (&next[..next.len() / 2], length(next.len()));
    let md5 = |of: &[u8]| format!("content-md5: {}", md5_of(of));
    let of_other = md5(b"something else");
    let packed = length(gzip.len());
    let broken: &[(&str, Vec<&str>, Vec<u8>)] = &[
        ("half the body", vec![&exact], half.to_vec()),
        ("no body", vec![&exact], Vec::new()),
        ("chunks without an end", vec!["transfer-encoding: chunked"], chunk(half)),
        ("a chunk that breaks off", vec!["transfer-encoding: chunked"], b"ffff\r\n{".to_vec()),
        ("chunks that are none", vec!["transfer-encoding: chunked"], b"zz\r\n{}\r\n0\r\n\r\n".to_vec()),
        ("a length that is none", vec!["content-length: many"], next.clone()),
        ("a negative length", vec!["content-length: -1"], next.clone()),
        ("two lengths", vec!["content-length: 3", &exact], next.clone()),
        ("neither length nor chunks", vec![], next.clone()),
        ("compressed", vec!["content-encoding: gzip", &packed], gzip.clone()),
        ("another digest", vec![&of_other, &exact], next.clone()),
        ("a digest that is none", vec!["content-md5: %%%", &exact], next.clone()),
        ("an empty digest", vec!["content-md5:", &exact], next.clone()),
        ("a digest that is no text", vec!["content-md5: \u{fe}", &exact], next.clone()),
        ("an expectation that nobody knows, and no body", vec!["expect: 200-ok", &exact], Vec::new()),
    ];
    for (what, headers, body) in broken {
        let status = socket.send_and_end(&line, headers, body).await;
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{what}: {status:?}");
        assert_eq!(backend.read().await.2, head, "{what}");
    }
    assert_eq!(backend.versions().await.len(), 1);

    let two = [chunk(half), chunk(&next[half.len()..]), b"0\r\n\r\n".to_vec()].concat();
    assert_eq!(
        socket.send(&line, &["transfer-encoding: chunked", &md5(&next)], &two).await,
        Some(200),
        "in chunks"
    );
    assert_eq!(backend.read().await.2, next);
    let seventh = state(7, LINEAGE, "waits").into_bytes();
    let waits = ["expect: 100-continue", &length(seventh.len())].map(str::to_owned);
    let waits: Vec<&str> = waits.iter().map(String::as_str).collect();
    assert_eq!(socket.send(&line, &waits, &seventh).await, Some(200), "after 100 Continue");
    assert_eq!(backend.read().await.2, seventh);
}

#[tokio::test]
async fn a_bad_lock_is_refused_and_an_odd_id_fits_only_itself() {
    let backend = Backend::start().await;
    let path = backend.path();
    let long = "x".repeat(300);
    let huge = json!({ "ID": "l", "Info": "x".repeat(100_000) }).to_string();
    let deep = format!(r#"{{"ID":"l","Info":{}{}}}"#, "[".repeat(7_000), "]".repeat(7_000));
    let endless = "x".repeat(200_000);
    for (method, path) in
        [("LOCK", path.clone()), ("POST", format!("{path}/lock")), ("PUT", format!("{path}/lock"))]
    {
        for (what, body) in [
            ("nothing", ""),
            ("an object without an id", "{}"),
            ("a list", "[]"),
            ("a list with an id", r#"[{"ID":"l"}]"#),
            ("null", "null"),
            ("an empty id", r#"{"ID":""}"#),
            ("an id that is a number", r#"{"ID":7}"#),
            ("an id that is null", r#"{"ID":null}"#),
            ("an id twice", r#"{"ID":"a","ID":"b"}"#),
            ("an id in lower case", r#"{"id":"l"}"#),
            ("NUL in the id", r#"{"ID":"a\u0000b"}"#),
            ("half a surrogate in the id", r#"{"ID":"\ud800"}"#),
            ("an id of 300 characters", &json!({ "ID": long }).to_string()),
            ("100 KB", &huge),
            ("200 KB of no JSON", &endless),
            ("NUL", "\0"),
            ("half", r#"{"ID":"l""#),
            ("more after it", r#"{"ID":"l"} x"#),
        ] {
            let (status, _, answer) = backend.send_as(&backend.token, method, &path, body.to_owned()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{method} {what}: {answer:?}");
        }
        let (status, ..) = backend.send_as(&backend.token, method, &path, vec![b'{', 0xff, b'}']).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{method} with invalid UTF-8");
    }
    assert!(backend.audited().await.is_empty());

    // Odd and right: kept and shown as it came.
    let lock = async |body: &str| backend.send_as(&backend.token, "LOCK", &path, body.to_owned()).await;
    assert_eq!(lock(&deep).await.0, StatusCode::OK);
    let (status, _, holder) = lock(r#"{"ID":"other"}"#).await;
    assert_eq!((status, holder), (StatusCode::LOCKED, deep.clone().into()));
    let (status, shown) = backend.api("GET", &format!("workspaces/{}/state-lock", backend.workspace)).await;
    assert_eq!((status, &shown["lock_id"]), (StatusCode::OK, &json!("l")));

    let next = state(1, LINEAGE, "next");
    let ten = "x".repeat(10 << 10);
    for (query, expected) in [
        ("ID=", 423),
        ("", 423),
        ("id=l", 423),
        ("ID=L", 409),
        ("ID=l%20", 409),
        ("ID=%00", 422),
        ("ID=%zz", 409),
        ("ID=%ff%fe", 409),
        ("ID=%", 409),
        (&format!("ID={ten}"), 422),
        ("ID=other&ID=l", 409),
        ("ID=&ID=l", 423),
        ("&&&=&ID", 423),
    ] {
        let (status, ..) =
            backend.send_as(&backend.token, "POST", &format!("{path}?{query}"), next.clone()).await;
        assert_eq!(status.as_u16(), expected, "{query:.40}");
        assert_eq!(backend.read().await.0, StatusCode::NO_CONTENT, "{query:.40}");
    }
    assert_eq!(backend.write(Some("l"), &next).await.0, StatusCode::OK);
    assert_eq!(backend.unlock("other").await.0, StatusCode::CONFLICT);
    assert_eq!(backend.unlock("l").await.0, StatusCode::OK);
}
