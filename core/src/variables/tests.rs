//! What wins, and what a value may be.

use super::*;
use crate::ids::VariableSetId;

fn set(priority: i32, name: &str) -> Origin {
    Origin::VariableSet { priority, name: name.into(), id: VariableSetId(uuid::Uuid::nil()) }
}

fn winners(all: &[(Origin, &str)]) -> Vec<(String, Origin)> {
    let all = all.iter().map(|(origin, key)| (origin.clone(), (*key).to_owned(), ()));
    merge(all).into_iter().map(|merged| (merged.key, merged.source)).collect()
}

#[test]
fn the_run_wins_over_its_workspace_over_sets_over_the_unit() {
    let order = [Origin::Global, set(0, "b"), set(0, "c"), set(7, "a"), Origin::Workspace, Origin::Run];
    for stronger in 1..order.len() {
        for weaker in 0..stronger {
            let (strong, weak) = (order[stronger].clone(), order[weaker].clone());
            let expected = [("k".to_owned(), strong.clone())];
            assert_eq!(winners(&[(strong.clone(), "k"), (weak.clone(), "k")]), expected);
            assert_eq!(winners(&[(weak, "k"), (strong, "k")]), expected);
        }
    }
}

#[test]
fn what_was_won_over_is_named_the_strongest_first_and_keys_are_sorted() {
    let all = [
        (Origin::Workspace, "b".to_owned(), 1),
        (Origin::Global, "b".to_owned(), 2),
        (set(5, "late"), "b".to_owned(), 3),
        (set(5, "early"), "b".to_owned(), 4),
        (Origin::Global, "a".to_owned(), 5),
        (Origin::Global, "B".to_owned(), 6),
    ];
    let merged = merge(all);
    let keys: Vec<&str> = merged.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(keys, ["B", "a", "b"], "keys are told apart by case");
    let last = merged.last().unwrap();
    assert_eq!((last.value, &last.source), (1, &Origin::Workspace));
    assert_eq!(last.overrides, [set(5, "late"), set(5, "early"), Origin::Global]);
    assert!(merge::<()>([]).is_empty());
}

#[test]
fn keys_are_names_of_terraform_variables() {
    for key in ["a", "_", "A_9", &"k".repeat(255)] {
        assert_eq!(check_key(key), Ok(()), "{key}");
    }
    for key in ["", "9a", "a-b", "a.b", "a b", "ü", "a=b", "a\n", &"k".repeat(256)] {
        assert!(check_key(key).is_err(), "{key:?}");
    }
}

#[test]
fn a_value_that_terraform_would_change_is_refused() {
    for value in ["", "=", "a\r\nb\n", "${x} %{y}", "\u{feff}", "\u{e9}", "\u{202e}", "\u{1}", "\u{7f}"] {
        assert_eq!(check_value(value, false), Ok(()), "{value:?}");
    }
    assert_eq!(check_value(&"x".repeat(64 << 10), false), Ok(()));
    assert!(check_value(&"x".repeat((64 << 10) + 1), false).is_err());
    assert!(check_value("a\0b", false).is_err());
    assert!(check_value("e\u{301}", false).is_err(), "decomposed");
    assert!(check_value("[1", true).is_err());
    assert_eq!(check_value("[1]", true), Ok(()));
}

#[test]
fn a_tail_is_shown_of_long_secrets_only() {
    assert_eq!(masked_tail("elevenchars"), None);
    assert_eq!(masked_tail("twelve-chars"), Some("…hars".into()));
    assert_eq!(masked_tail("a secret with\u{1b}[3\n"), Some("…\\u{1b}[3\\n".into()));
}

#[test]
fn what_holds_a_value_prints_none() {
    let value = VariableValue::from("hunter2-hunter2".to_owned());
    let new = NewVariable {
        key: "password".into(),
        value: value.clone(),
        is_secret: true,
        is_hcl: false,
        description: None,
    };
    let change = VariableChange { value: Some(value.clone()), ..VariableChange::default() };
    let text = format!("{value:?} {new:?} {change:?}");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("15 bytes"), "{text}");
}
