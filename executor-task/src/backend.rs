//! Whether the state goes where ours goes.

use serde_json::Value;

/// Whether what `init` kept of a backend is the one that we gave: of the kind that the proxy speaks, with nothing written
/// down, because all that it needs comes by the environment.
pub(crate) fn is_own(backend: &Value) -> bool {
    let says_nothing =
        |config: &Value| config.as_object().is_some_and(|settings| settings.values().all(Value::is_null));
    backend["type"] == "http" && says_nothing(&backend["config"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_backend_is_ours_only_if_it_is_http_and_names_nothing() {
        assert!(is_own(
            &json!({ "type": "http", "config": { "address": null, "username": null }, "hash": 1 })
        ));
        for other in [
            json!(null),
            json!({}),
            json!({ "type": "http" }),
            json!({ "type": "local", "config": { "path": null } }),
            json!({ "type": "http", "config": { "address": "https://elsewhere.example.com" } }),
            json!({ "type": "http", "config": { "address": null, "skip_cert_verification": true } }),
            json!({ "type": "s3", "config": {} }),
        ] {
            assert!(!is_own(&other), "{other}");
        }
    }
}
