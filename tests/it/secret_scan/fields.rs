//! Which fields of the API may carry a secret, by its document: so that a new one is seen.

use std::collections::BTreeSet;

use serde_json::Value;

/// A text in a field with one of these words in its name may be a secret, also where the document does not say so.
const WORDS: [&str; 9] =
    ["password", "passphrase", "secret", "token", "key", "credential", "kubeconfig", "private", "value"];

/// Texts that are called so and are none, and why.
const HARMLESS: [(&str, &str); 22] = [
    ("ApiKeyView.token_prefix", "what people know a key by: too short to be used"),
    ("CiKey.token_type", "the word `bearer`"),
    ("TokenPair.token_type", "the word `bearer`"),
    ("EffectiveVariable.key", "a name"),
    ("NewVariable.key", "a name"),
    ("RunVariable.key", "a name"),
    ("Variable.key", "a name"),
    ("HistoryEntry.key", "a name"),
    ("EffectiveVariable.value", "null for a secret"),
    ("Variable.value", "null for a secret"),
    ("HistoryEntry.new_value", "null for a secret"),
    ("HistoryEntry.old_value", "null for a secret"),
    ("SettingView.value", "null for a secret"),
    ("GitCredential.public_key", "public"),
    ("GitCredential.host_keys", "public"),
    ("NewGitCredential.host_keys", "public"),
    ("GitCredentialChange.host_keys", "public"),
    ("SignedCheckpoint.public_key", "public"),
    ("SignedCheckpoint.key_id", "a name"),
    ("Rekey.key_id", "a name"),
    ("IssuerKeyView.kms_key", "a name"),
    ("ResourceView.index_key", "a part of an address: Terraform refuses sensitive ones in `for_each`"),
];

/// `Schema.field` of everything that may carry a secret.
pub fn secret_fields(document: &Value) -> BTreeSet<String> {
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut found = BTreeSet::new();
    // Pages repeat what is in a schema of its own.
    for (name, schema) in schemas.iter().filter(|(name, _)| !name.starts_with("Page_")) {
        fields(document, name, schema, &mut found);
    }
    found.into_iter().filter(|field| !HARMLESS.iter().any(|(harmless, _)| harmless == field)).collect()
}

fn fields(document: &Value, name: &str, schema: &Value, found: &mut BTreeSet<String>) {
    for (field, kind) in schema["properties"].as_object().into_iter().flatten() {
        if is_marked(document, kind) || (is_named_so(field) && may_be_text(kind)) {
            found.insert(format!("{name}.{field}"));
        }
        // An object within has no name of its own.
        fields(document, &format!("{name}.{field}"), kind, found);
    }
    for list in ["oneOf", "anyOf", "allOf"] {
        schema[list].as_array().into_iter().flatten().for_each(|part| fields(document, name, part, found));
    }
    if schema["items"].is_object() {
        fields(document, name, &schema["items"], found);
    }
}

/// Whether the document says that it is a secret.
fn is_marked(document: &Value, kind: &Value) -> bool {
    let target = kind["$ref"].as_str().map(|path| path.trim_start_matches('#'));
    kind["format"] == "password"
        || kind["writeOnly"] == true
        || target.is_some_and(|path| is_marked(document, &document.pointer(path).unwrap().clone()))
        || ["oneOf", "anyOf", "allOf"]
            .iter()
            .any(|list| kind[*list].as_array().into_iter().flatten().any(|part| is_marked(document, part)))
}

fn is_named_so(field: &str) -> bool {
    field.split('_').any(|word| WORDS.contains(&word.trim_end_matches('s')))
}

/// Text, a list of texts, or anything.
fn may_be_text(kind: &Value) -> bool {
    let is = |name: &str| {
        kind["type"] == name || kind["type"].as_array().is_some_and(|all| all.contains(&name.into()))
    };
    let is_anything =
        ["type", "$ref", "oneOf", "anyOf", "allOf"].iter().all(|word| kind.get(*word).is_none());
    is("string") || is_anything || (is("array") && may_be_text(&kind["items"]))
}

/// The document of the API.
pub fn document() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_new_secret_field_is_seen_whether_it_is_marked_or_only_called_so() {
    let document = serde_json::json!({ "components": { "schemas": {
        "Password": { "type": "string", "format": "password" },
        "New": { "properties": {
            "marked": { "type": ["string", "null"], "format": "password" },
            "written": { "type": "string", "writeOnly": true },
            "referred": { "oneOf": [{ "$ref": "#/components/schemas/Password" }, { "type": "null" }] },
            "api_token": { "type": "string" },
            "backup_keys": { "type": "array", "items": { "type": "string" } },
            "value": {},
            "has_password": { "type": "boolean" },
            "name": { "type": "string" },
            "inner": { "properties": { "secret": { "type": "string" } } },
        } },
        "Wrapped": { "allOf": [{ "properties": { "token": { "type": "string" } } }] },
        "Page_New": { "properties": { "items": { "items": { "properties": { "secret": { "type": "string" } } } } } },
    } } });
    let expected = [
        "New.api_token",
        "New.backup_keys",
        "New.inner.secret",
        "New.marked",
        "New.referred",
        "New.value",
        "New.written",
        "Wrapped.token",
    ];
    assert_eq!(secret_fields(&document), expected.map(str::to_owned).into());
}

#[test]
fn what_is_said_to_be_no_secret_is_still_there() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, reason) in HARMLESS {
        let (schema, field) = name.split_once('.').unwrap();
        let is_there =
            schemas.get(schema).is_some_and(|schema| schema.to_string().contains(&format!("\"{field}\":")));
        assert!(is_there, "{name} ({reason}) is gone: take it off the list");
    }
}
