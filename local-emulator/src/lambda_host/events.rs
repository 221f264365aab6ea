//! API Gateway's HTTP API, payload format 2.0: requests as events, and answers back.

use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::gateway::is_text;
use crate::home::random_word;

/// The event of one request, serialised.
pub(crate) fn request_event(parts: &http::request::Parts, body: &Bytes) -> Vec<u8> {
    let text = std::str::from_utf8(body).ok().filter(|_| is_text(&parts.headers));
    let (encoded, is_base64) = match text {
        Some(text) => (text.to_owned(), false),
        None => (STANDARD.encode(body), true),
    };
    let path = parts.uri.path();
    let cookies: Vec<&str> =
        parts.headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok()).collect();
    let mut event = json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": parts.uri.query().unwrap_or(""),
        "headers": joined_headers(&parts.headers),
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "domainName": parts.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost"),
            "domainPrefix": "local",
            "http": {
                "method": parts.method.as_str(),
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": parts.headers.get("x-forwarded-for").and_then(|ip| ip.to_str().ok()).unwrap_or("127.0.0.1"),
                "userAgent": parts.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or(""),
            },
            "requestId": random_word(),
            "routeKey": "$default",
            "stage": "$default",
            "time": "01/Jan/1970:00:00:00 +0000",
            "timeEpoch": 0,
        },
        "isBase64Encoded": is_base64,
    });
    if !cookies.is_empty() {
        event["cookies"] = json!(cookies);
    }
    if !encoded.is_empty() {
        event["body"] = Value::String(encoded);
    }
    serde_json::to_vec(&event).expect("a JSON value can be serialised")
}

/// Several headers of one name travel as one, joined by commas; cookies have a place of their own.
fn joined_headers(headers: &http::HeaderMap) -> Map<String, Value> {
    let mut joined = Map::new();
    for name in headers.keys().filter(|name| **name != header::COOKIE) {
        let values: Vec<_> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        joined.insert(name.as_str().to_owned(), Value::String(values.join(",")));
    }
    joined
}

/// What a function answers.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status_code: u16,
    #[serde(default)]
    headers: Map<String, Value>,
    #[serde(default)]
    multi_value_headers: Map<String, Value>,
    #[serde(default)]
    cookies: Vec<String>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

/// How many bytes a response has once a function has wrapped it.
pub(crate) fn response_payload_bytes(parts: &http::response::Parts, body: &Bytes) -> usize {
    let text = std::str::from_utf8(body).ok();
    let plain =
        text.filter(|_| is_text(&parts.headers) && !parts.headers.contains_key(header::CONTENT_ENCODING));
    let answer = Answer {
        status_code: parts.status.as_u16(),
        headers: joined_headers(&parts.headers),
        multi_value_headers: Map::new(),
        cookies: Vec::new(),
        is_base64_encoded: plain.is_none(),
        body: Some(plain.map_or_else(|| STANDARD.encode(body), str::to_owned)),
    };
    serde_json::to_vec(&answer).map_or(usize::MAX, |bytes| bytes.len())
}

/// The response that a function's answer stands for; an error says what is wrong with the answer.
pub(crate) fn response(answer: &[u8]) -> Result<Response, String> {
    let answer: Answer =
        serde_json::from_slice(answer).map_err(|error| format!("it is no answer: {error}"))?;
    let body = match answer.body {
        None => Vec::new(),
        Some(text) if answer.is_base64_encoded => {
            STANDARD.decode(text).map_err(|error| format!("its body is not base64: {error}"))?
        }
        Some(text) => text.into_bytes(),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() =
        StatusCode::from_u16(answer.status_code).map_err(|error| format!("its status is wrong: {error}"))?;
    let headers = response.headers_mut();
    for (name, value) in answer.headers {
        append(headers, &name, &value)?;
    }
    for (name, values) in answer.multi_value_headers {
        let name_known = HeaderName::try_from(name.as_str()).is_ok_and(|name| headers.contains_key(name));
        // Functions may fill both; the single values are then part of the many.
        if !name_known {
            for value in values.as_array().into_iter().flatten() {
                append(headers, &name, value)?;
            }
        }
    }
    for cookie in answer.cookies {
        append(headers, "set-cookie", &Value::String(cookie))?;
    }
    Ok(response)
}

fn append(headers: &mut http::HeaderMap, name: &str, value: &Value) -> Result<(), String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let name = HeaderName::try_from(name).map_err(|error| format!("a header's name is wrong: {error}"))?;
    let value = HeaderValue::try_from(text).map_err(|error| format!("a header's value is wrong: {error}"))?;
    // The length is that of the decoded body, which the server counts itself.
    if name != header::CONTENT_LENGTH {
        headers.append(name, value);
    }
    Ok(())
}
