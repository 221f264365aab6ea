//! `Debug` never prints a secret. Types that may hold one are found in the sources by the names of their fields, so that a
//! new one is seen: it has no `Debug`, keeps the secret as `SecretText`, or writes its own `Debug` and is formatted here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::PathBuf;

use plumbline_core::access::Capability;
use plumbline_core::api_keys::{ApiKeyView, MintedKey, RuleKey};
use plumbline_core::ci_logins::{CiKey, CiLogin};
use plumbline_core::cloud_accounts::gcp::ServiceAccount;
use plumbline_core::db::{Connect, PgMode};
use plumbline_core::git_credentials::AppKey;
use plumbline_core::ids::IdSource;
use plumbline_core::ports::LaunchRequest;
use plumbline_core::protocol::{AwsKeys, Bundle, IdentityProof, IdentityToken, TradeRequest};
use plumbline_core::runs::RunVariable;
use plumbline_core::secrets::{Keyring, SecretText};
use plumbline_core::sessions::TokenPair;
use serde_json::json;

use super::shipped_sources;

/// What a field is called that may hold a secret: any of these between underscores.
const WORDS: [&str; 19] = [
    "password",
    "passwords",
    "token",
    "tokens",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "passphrase",
    "ticket",
    "authorization",
    "kubeconfig",
    "nonce",
    "login",
    "seed",
    "pem",
    "private",
    "value",
    "variables",
];
/// Ends and beginnings of names that say something about a secret and are none.
const HARMLESS_ENDS: [&str; 8] = ["_prefix", "_hash", "_age", "_sealed", "_id", "_file", "_stdin", "_type"];
/// Types in which a secret can stand in the clear.
const PLAIN: [&str; 5] = ["String", "str", "u8", "Bytes", "Value"];

/// Fields that are called so and hold none, and why.
const NO_SECRETS: [(&str, &str); 13] = [
    ("cli/src/api/views/administration.rs ConfigChange", "the history holds no secret's values"),
    ("cli/src/api/views/administration.rs Tunable", "the API shows no secret's value"),
    ("cli/src/api/views/variables.rs EffectiveVariable", "the API shows no secret's value"),
    ("cli/src/api/views/variables.rs Variable", "the API shows no secret's value"),
    ("cli/src/commands/config.rs SetArgs", "a secret comes from a file or stdin, and is refused here"),
    ("cli/src/commands/integrations.rs SetArgs", "names of fields; a secret comes from a file or stdin"),
    (
        "cli/src/commands/runs/trigger.rs TriggerArgs",
        "what is typed as an argument is no secret: those come by name",
    ),
    ("cli/src/commands/variables.rs SetArgs", "a secret comes from a file or stdin, and is refused here"),
    ("core/src/config/views.rs HistoryEntry", "the history holds no secret's values"),
    ("core/src/config/views.rs SettingView", "its value is absent for secrets"),
    ("core/src/issuer_keys/model.rs Discovery", "published: names of algorithms"),
    ("core/src/workspaces/rules.rs TagFilter", "tags are shown to everybody"),
    ("local-emulator/src/lambda_host/events.rs Answer", "what a function answers, headers by name"),
];

/// How a type that may hold a secret shows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Derived,
    ByHand,
    Never,
}

/// Types with a field that may hold a secret in the clear, as `file type`.
fn suspects(sources: &[(PathBuf, String)]) -> BTreeMap<String, Shown> {
    let mut found = BTreeMap::new();
    for (path, text) in sources {
        for (at, _) in text.match_indices(" struct ").chain(text.match_indices("\nstruct ")) {
            let rest = text[at..].trim_start().trim_start_matches("struct ");
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let Some((head, body)) = rest.split_once('{') else { continue };
            if head.contains(';') || head.contains('(') {
                continue;
            }
            let body = body.split("\n}").next().unwrap_or_default();
            if body.lines().any(may_hold_a_secret) {
                found.insert(format!("{} {name}", path.display()), shown(text, at, &name));
            }
        }
    }
    found
}

fn may_hold_a_secret(line: &str) -> bool {
    let line = line
        .trim()
        .trim_start_matches("pub ")
        .trim_start_matches("pub(super) ")
        .trim_start_matches("pub(crate) ");
    let Some((name, kind)) = line.split_once(": ") else { return false };
    let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let is_named_so = name.split('_').any(|part| WORDS.contains(&part));
    let is_harmless = name.starts_with("is_") || HARMLESS_ENDS.iter().any(|end| name.ends_with(end));
    let mut parts = kind.split(|c: char| !c.is_ascii_alphanumeric());
    is_name && is_named_so && !is_harmless && parts.any(|part| PLAIN.contains(&part))
}

fn shown(text: &str, at: usize, name: &str) -> Shown {
    let attributes = &text[text[..=at].rfind("\n\n").unwrap_or(0)..=at];
    if attributes
        .split("derive(")
        .skip(1)
        .any(|list| list.split(')').next().unwrap_or_default().contains("Debug"))
    {
        Shown::Derived
    } else if text.contains(&format!("Debug for {name} {{")) {
        Shown::ByHand
    } else {
        Shown::Never
    }
}

fn all_sources() -> Vec<(PathBuf, String)> {
    [
        "core/src",
        "functions",
        "executor-task/src",
        "state-proxy/src",
        "adapters",
        "cli/src",
        "local-emulator/src",
    ]
    .into_iter()
    .flat_map(shipped_sources)
    .collect()
}

const PLANTED: &str = "hunter2-never-shown";

/// Every public type that writes its own `Debug`, with the same secret in each place where one can be.
fn specimens() -> BTreeMap<&'static str, Box<dyn Debug>> {
    let planted = || PLANTED.to_owned();
    let ids = IdSource;
    let proof = IdentityProof {
        authorization: planted(),
        date: "20260131T235959Z".into(),
        security_token: planted(),
    };
    let bundle: Bundle = serde_json::from_value(bundle()).expect("a bundle");
    let trade =
        TradeRequest { protocol: 1, ticket: planted(), nonce: planted(), identity: Some(proof.clone()) };
    let launch = LaunchRequest {
        executor_id: ids.mint(),
        task_id: ids.mint(),
        lease_token: 1,
        callback_url: "http://127.0.0.1:9".into(),
        ticket: planted(),
    };
    let keys = plumbline_s3::Keys {
        endpoint: "http://127.0.0.1:9".into(),
        region: "us-east-1".into(),
        bucket: "bucket".into(),
        access_key_id: "id".into(),
        secret_access_key: planted(),
    };
    let pair =
        TokenPair { access_token: planted(), refresh_token: planted(), token_type: "bearer", expires_in: 1 };
    let variable =
        RunVariable { key: "name".into(), value: planted().into(), is_secret: true, is_hcl: false };
    let session = plumbline_cli::session::Session {
        server: "http://127.0.0.1:9".into(),
        email: "a@example.com".into(),
        access_token: planted(),
        refresh_token: planted(),
    };
    let git = plumbline_emulator::GitServer { root: "/".into(), credentials: Some((planted(), planted())) };
    let connect =
        Connect { url: format!("postgres://u:{PLANTED}@127.0.0.1/d"), pool_size: 1, mode: PgMode::Direct };
    let environment: plumbline_runtime::Environment = [("NAME", PLANTED)].into_iter().collect();
    let ring = Keyring::from_root(&[PLANTED, PLANTED].join(" and ")).expect("a root key");
    let invite: plumbline_cli::api::views::Invite =
        serde_json::from_value(json!({ "token": PLANTED, "expires_at": null })).expect("an invitation");
    let of_rule = RuleKey {
        id: ids.mint(),
        token: planted(),
        token_prefix: "plb_abcdef".into(),
        expires_at: chrono::DateTime::UNIX_EPOCH,
    };
    let output: plumbline_cli::api::views::StateOutput =
        serde_json::from_value(json!({ "name": "o", "type": "string", "value": PLANTED }))
            .expect("an output");
    let all: [(&str, Box<dyn Debug>); 23] = [
        ("IdentityProof", Box::new(proof)),
        ("Bundle", Box::new(bundle)),
        ("TradeRequest", Box::new(trade)),
        ("LaunchRequest", Box::new(launch)),
        ("Keys", Box::new(keys)),
        ("TokenPair", Box::new(pair)),
        ("Invite", Box::new(invite)),
        ("StateOutput", Box::new(output)),
        ("MintedKey", Box::new(minted_key())),
        ("RuleKey", Box::new(of_rule)),
        ("AwsKeys", Box::new(aws_keys())),
        ("IdentityToken", Box::new(IdentityToken { token: planted(), expires_in_seconds: 1 })),
        ("AppKey", Box::new(serde_json::from_value::<AppKey>(app_key()).expect("a key"))),
        ("CiKey", Box::new(ci_key())),
        (
            "CiLogin",
            Box::new(serde_json::from_value::<CiLogin>(json!({ "token": PLANTED })).expect("a login")),
        ),
        (
            "ServiceAccount",
            Box::new(serde_json::from_value::<ServiceAccount>(service_account()).expect("an account")),
        ),
        ("RunVariable", Box::new(variable)),
        ("Session", Box::new(session)),
        ("GitServer", Box::new(git)),
        ("Connect", Box::new(connect)),
        ("Environment", Box::new(environment)),
        ("Keyring", Box::new(ring)),
        ("SecretText", Box::new(SecretText::new(PLANTED))),
    ];
    all.into()
}

fn aws_keys() -> AwsKeys {
    AwsKeys {
        access_key_id: PLANTED.into(),
        secret_access_key: PLANTED.into(),
        session_token: Some(PLANTED.into()),
    }
}

fn app_key() -> serde_json::Value {
    json!({ "app_id": "1", "installation_id": 1, "api_url": "https://api.example.com", "private_key": PLANTED })
}

fn ci_key() -> CiKey {
    let ids = IdSource;
    CiKey {
        token: PLANTED.into(),
        token_type: "bearer",
        expires_at: chrono::DateTime::UNIX_EPOCH,
        capability: Capability::Read,
        business_unit_id: ids.mint(),
        trust_rule_id: ids.mint(),
    }
}

fn service_account() -> serde_json::Value {
    json!({ "type": "service_account", "project_id": "p", "private_key": PLANTED,
            "client_email": "a@p.iam.gserviceaccount.com" })
}

fn minted_key() -> MintedKey {
    let ids = IdSource;
    let key = ApiKeyView {
        id: ids.mint(),
        name: "ci".into(),
        token_prefix: "plb_abcdef".into(),
        capability: Capability::Read,
        workspace_ids: None,
        business_unit_id: ids.mint(),
        user_id: Some(ids.mint()),
        trust_rule_id: None,
        created_by: None,
        created_at: chrono::DateTime::UNIX_EPOCH,
        last_used_at: None,
        expires_at: None,
        revoked_at: None,
        rotated_at: None,
        superseded_by_id: None,
    };
    MintedKey { key, token: PLANTED.to_owned() }
}

fn bundle() -> serde_json::Value {
    let id = "01890000-0000-7000-8000-000000000000";
    json!({
        "protocol": 1, "token": PLANTED, "executor_id": id, "task_id": id, "run_id": id, "workspace_id": id,
        "phase": "plan", "command": "plan", "attempt": 1,
        "lease": { "lease_seconds": 60, "heartbeat_seconds": 15, "wall_clock_seconds": 60 },
        "source": { "repo_url": "https://git.example.com/x.git", "branch": "main", "commit": null, "working_dir": ".",
                    "credential": { "username": "x", "password": PLANTED } },
        "tool": { "name": "terraform", "version": null, "pinned": false },
        "variables": [{ "key": "x", "value": PLANTED, "is_secret": true }], "environment": { "X": PLANTED },
        "steps": [], "state": null, "plan": null, "log_bytes_max": 1, "traceparent": null
    })
}

/// Types of these programs that nobody outside can make: their `Debug` names harmless fields one by one, as it can be read
/// beside them.
const INSIDE: [&str; 5] = [
    "core/src/sessions/tokens.rs RefreshToken",
    "local-emulator/src/lambda_host/mod.rs Inner",
    "local-emulator/src/object_store.rs Access",
    "local-emulator/src/postgres/server.rs Cluster",
    "local-emulator/src/postgres/server.rs Settings",
];

#[test]
fn no_type_that_may_hold_a_secret_derives_its_debug() {
    let derived: BTreeSet<String> = suspects(&all_sources())
        .into_iter()
        .filter(|(_, shown)| *shown == Shown::Derived)
        .map(|(name, _)| name)
        .collect();
    let known: BTreeSet<String> = NO_SECRETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(derived, known, "keep it as SecretText, write Debug by hand, or say why it is no secret");
}

#[test]
fn every_type_that_may_hold_a_secret_is_formatted_without_it() {
    let specimens = specimens();
    for (name, shown) in suspects(&all_sources()).iter().filter(|(_, shown)| **shown == Shown::ByHand) {
        let short = name.rsplit(' ').next().unwrap_or_default();
        assert!(
            specimens.contains_key(short) || INSIDE.contains(&name.as_str()),
            "{name} is not formatted here: {shown:?}"
        );
    }
    for (name, specimen) in specimens {
        for text in [format!("{specimen:?}"), format!("{specimen:#?}")] {
            assert!(!text.contains("hunter2"), "{name}: {text}");
        }
    }
}

#[test]
fn a_debug_by_hand_lends_out_nothing_that_is_named_like_a_secret() {
    for (path, text) in all_sources() {
        for written in text.split("Debug for ").skip(1) {
            let body = written.split("\n}").next().unwrap_or_default();
            for field in body.split("&self.").skip(1) {
                let name: String = field.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let is_harmless =
                    name == "lease_token" || HARMLESS_ENDS.iter().any(|end| name.ends_with(end));
                let is_named_so = name.split('_').any(|part| WORDS.contains(&part));
                assert!(is_harmless || !is_named_so, "{}: Debug shows {name}", path.display());
            }
        }
    }
}

#[test]
fn a_new_type_with_a_secret_is_seen() {
    let source = "/// New.\n#[derive(Clone, Debug)]\npub struct Planted {\n    /// Secret.\n    pub api_token: String,\n}\n\n\
                  #[derive(Clone)]\nstruct Fine {\n    password: String,\n}\n\n\
                  #[derive(Debug)]\nstruct Wrapped {\n    password: SecretText,\n    token_hash: Vec<u8>,\n}\n";
    let found = suspects(&[("x.rs".into(), source.to_owned())]);
    let expected = [("x.rs Fine".to_owned(), Shown::Never), ("x.rs Planted".to_owned(), Shown::Derived)];
    assert_eq!(found, BTreeMap::from(expected));
}
