use uuid::Uuid;

use super::{IssuerOff, check_audience, issuer, subject};
use crate::protocol::RunPhase;

#[test]
fn the_issuer_is_the_public_address_without_a_slash_and_only_a_host() {
    for (url, is_one_machine, wanted) in [
        ("https://plumbline.example.com", false, Ok("https://plumbline.example.com")),
        ("https://plumbline.example.com/", false, Ok("https://plumbline.example.com")),
        ("https://plumbline.example.com:8443", false, Ok("https://plumbline.example.com:8443")),
        ("https://Plumbline.Example.com", false, Ok("https://plumbline.example.com")),
        ("http://127.0.0.1:7500", true, Ok("http://127.0.0.1:7500")),
        ("http://[::1]:7500", true, Ok("http://[::1]:7500")),
        ("http://localhost:7500", true, Ok("http://localhost:7500")),
        ("http://127.0.0.1:7500", false, Err(IssuerOff::Unencrypted)),
        ("http://plumbline.example.com", true, Err(IssuerOff::Unencrypted)),
        ("http://127.0.0.1.example.com", true, Err(IssuerOff::Unencrypted)),
        ("https://example.com/plumbline", false, Err(IssuerOff::NotAHost)),
        ("https://example.com/?x", false, Err(IssuerOff::NotAHost)),
        ("https://user@example.com", false, Err(IssuerOff::NotAHost)),
        ("plumbline", false, Err(IssuerOff::NotAHost)),
    ] {
        assert_eq!(issuer(url, is_one_machine).as_deref().map_err(|error| *error), wanted, "{url}");
    }
}

#[test]
fn a_subject_is_made_of_ids_and_the_phase() {
    let (unit, workspace) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
    assert_eq!(
        subject(unit, workspace, RunPhase::Apply),
        "unit:00000000-0000-0000-0000-000000000001:workspace:00000000-0000-0000-0000-000000000002:phase:apply"
    );
    assert!(subject(unit, workspace, RunPhase::Plan).ends_with(":phase:plan"));
}

#[test]
fn an_audience_is_one_word() {
    for fine in ["sts.amazonaws.com", "api://AzureADTokenExchange", &"x".repeat(255)] {
        assert!(check_audience(fine).is_ok(), "{fine}");
    }
    for wrong in ["", "a b", "a\nb", "ä", &"x".repeat(256)] {
        assert!(check_audience(wrong).is_err(), "{wrong}");
    }
}
