//! The registry and its rules.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::model::{Given, Kind, Level, Setting, Value};
use super::registry::{self as keys, SETTINGS};
use super::rules::{self, Before, masked_tail};
use super::{Changed, INTEGRATIONS};
use crate::limits::Limits;
use crate::secrets::SecretText;
use crate::workspaces::LocalRepos;

fn read(setting: &Setting, value: Json) -> Result<Given, String> {
    rules::read(setting, &value, LocalRepos::Refused)
}

fn accepts(setting: &Setting, value: Json) -> bool {
    read(setting, value).is_ok()
}

#[test]
fn every_setting_has_one_name_a_sentence_and_a_default_that_it_would_take() {
    let names: BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    assert_eq!(names.len(), SETTINGS.len(), "no name twice");
    for setting in SETTINGS {
        let name = setting.name;
        assert!(name.len() <= 100 && setting.doc.trim().ends_with('.'), "{name}: {}", setting.doc);
        let default = setting.default_value(&Limits::default());
        if let Some(default) = &default {
            assert_eq!(read(setting, json!(default)), Ok(Given::Plain(default.clone())), "{name}");
        }
        let must_have =
            matches!(setting.kind, Kind::Bool | Kind::Integer { .. } | Kind::Duration { .. } | Kind::Word(_));
        assert!(default.is_some() || !must_have, "{name} always holds something");
        assert!(default.is_none() || !setting.is_secret(), "{name}: nobody knows a secret in advance");
    }
}

#[test]
fn a_duration_is_named_by_its_unit() {
    for setting in SETTINGS {
        let Kind::Duration { unit, .. } = setting.kind else { continue };
        let ending = if unit.seconds() == 60 { "_minutes" } else { "_hours" };
        assert!(setting.name.ends_with(ending), "{}", setting.name);
    }
}

#[test]
fn every_setting_of_a_unit_is_a_field_of_one_integration_and_no_other_is() {
    let fields = INTEGRATIONS.iter().flat_map(|integration| integration.fields.iter());
    let mut shown: Vec<&str> = fields.map(|(_, setting)| setting.name).collect();
    shown.sort_unstable();
    let mut of_units: Vec<&str> =
        SETTINGS.iter().filter(|one| one.level == Level::Unit).map(|one| one.name).collect();
    of_units.sort_unstable();
    assert_eq!(shown, of_units);
    for (_, setting) in INTEGRATIONS.iter().flat_map(|integration| integration.fields) {
        assert!(keys::find_platform(setting.name).is_none(), "{}", setting.name);
    }
}

#[test]
fn numbers_keep_to_their_bounds_and_types() {
    let minutes = &keys::ACCESS_TOKEN_EXPIRE_MINUTES;
    for fits in [5, 480, 1440] {
        assert_eq!(read(minutes, json!(fits)), Ok(Given::Plain(Value::Integer(fits))));
    }
    for refused in
        [json!(4), json!(1441), json!(0), json!(-1), json!(60.5), json!("60"), json!(true), json!(null)]
    {
        let why = read(minutes, refused.clone()).expect_err(&refused.to_string());
        assert_eq!(why, "must be a whole number from 5 to 1440");
    }
}

#[test]
fn words_and_booleans_are_nothing_else() {
    for mode in ["enforce", "warn", "off"] {
        assert!(accepts(&keys::CHECKOV_MODE, json!(mode)));
    }
    for refused in [json!("fail"), json!("Enforce"), json!(""), json!(true), json!(["warn"])] {
        assert!(!accepts(&keys::CHECKOV_MODE, refused.clone()), "{refused}");
    }
    assert!(accepts(&keys::OPA_USE_BUNDLED, json!(false)));
    assert!(!accepts(&keys::OPA_USE_BUNDLED, json!("false")) && !accepts(&keys::OPA_USE_BUNDLED, json!(0)));
}

#[test]
fn texts_have_the_form_that_their_reader_needs() {
    let cases: [(&Setting, &[&str], &[&str]); 9] = [
        (
            &keys::SMTP_HOST,
            &["mail.example.com", "192.0.2.7", "::1"],
            &["", "mail:25", "a b", "u@h", "h/p", "-h"],
        ),
        (&keys::SMTP_FROM, &["a.b@example.com"], &["a", "a@", "@b", "a@b\r\nBcc: c@d", "a@b, c@d", "<a@b>"]),
        (&keys::SMTP_TO, &["a@b", "a@b, c@d"], &["a@b,", "a@b;c@d", "a@b,\nc@d"]),
        (&keys::INFRACOST_CURRENCY, &["USD", "EUR"], &["usd", "EURO", "E1R", "€€€"]),
        (&keys::GITHUB_ORG, &["acme", "acme-2.x"], &["", "-acme", "acme/infra", "acme corp"]),
        (
            &keys::INFRA_REPO_URL,
            &["https://git.example.com/a.git", "git@git.example.com:a.git"],
            &["ext::sh -c x", "file:///etc", "/etc", "https://u:p@git.example.com/a", "--upload-pack=x"],
        ),
        (&keys::OPA_REPO_REF, &["main", "release/1"], &["-x", "a..b", "a b", ""]),
        (&keys::OPA_REPO_DIR, &["policies", "a/b", "."], &["../x", "/etc", "a\\b"]),
        (
            &keys::OIDC_ISSUER,
            &["https://id.example.com/realm"],
            &["id.example.com", "ftp://x", "https://u:p@x", "https://"],
        ),
    ];
    for (setting, fits, refused) in cases {
        for text in fits {
            assert!(accepts(setting, json!(text)), "{}: {text}", setting.name);
        }
        for text in refused {
            assert!(!accepts(setting, json!(text)), "{}: {text}", setting.name);
        }
        assert!(
            !accepts(setting, json!("x".repeat(5000))) && !accepts(setting, json!(7)),
            "{}",
            setting.name
        );
    }
}

#[test]
fn secrets_have_a_least_length_and_no_line_ends() {
    for refused in ["", "fifteen-letters", " sixteen-letters-", "sixteen\nletters-", &"x".repeat(4097)] {
        let why = read(&keys::WEBHOOK_SECRET, json!(refused)).expect_err(refused);
        assert!(refused.is_empty() || !why.contains(refused), "the reason does not tell the value: {why}");
    }
    assert!(accepts(&keys::WEBHOOK_SECRET, json!("sixteen letters-")));
    assert!(accepts(&keys::SLACK_WEBHOOK_URL, json!("https://hooks.example.com/services/T/B/x")));
    assert!(!accepts(&keys::SLACK_WEBHOOK_URL, json!("http://hooks.example.com/services/T/B/x")));
}

#[test]
fn a_secret_prints_nothing_of_itself() {
    let given = read(&keys::WEBHOOK_SECRET, json!("correct horse battery")).expect("long enough");
    assert!(!format!("{given:?}").contains("horse"), "{given:?}");
}

#[test]
fn only_the_end_of_a_long_secret_is_shown() {
    let tail = |text: &str| masked_tail(&SecretText::new(text));
    assert_eq!(tail("abcdefghijkl").as_deref(), Some("...ijkl"));
    assert_eq!(tail("abcdefghijk"), None, "eleven characters");
    assert_eq!(tail("ääääääääääöü12").as_deref(), Some("...öü12"));
    assert_eq!(tail(""), None);
}

#[test]
fn what_changes_nothing_is_no_change() {
    let plain = |value| Some(Given::Plain(Value::Text(value)));
    let secret = Given::Secret(SecretText::new("correct horse"));
    let was = json!("warn");
    let unset = Before { value: None, is_sealed: false };
    let set = Before { value: Some(&was), is_sealed: false };
    let sealed = Before { value: None, is_sealed: true };
    assert_eq!(rules::changed(unset, None), None);
    assert_eq!(rules::changed(unset, plain("warn".into()).as_ref()), Some(Changed::Set));
    assert_eq!(rules::changed(set, plain("warn".into()).as_ref()), None);
    assert_eq!(rules::changed(set, plain("off".into()).as_ref()), Some(Changed::Replaced));
    assert_eq!(rules::changed(set, None), Some(Changed::Deleted));
    assert_eq!(rules::changed(unset, Some(&secret)), Some(Changed::Set));
    assert_eq!(rules::changed(sealed, Some(&secret)), Some(Changed::Replaced), "even if it is the same");
    assert_eq!(rules::changed(sealed, None), Some(Changed::Deleted));
}

#[test]
fn a_stored_value_that_is_no_longer_allowed_holds_no_more() {
    assert_eq!(rules::stored(&keys::BCRYPT_COST, &json!(12)), Some(Value::Integer(12)));
    assert_eq!(rules::stored(&keys::BCRYPT_COST, &json!(31)), None);
    assert_eq!(rules::stored(&keys::CHECKOV_MODE, &json!("fail")), None);
}
