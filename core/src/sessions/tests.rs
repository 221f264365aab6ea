//! The pure parts of sessions.

use chrono::{DateTime, TimeDelta};
use uuid::Uuid;

use super::SessionError;
use super::model::{NamedUnit, Origin, Place, Standing};
use super::rules::{RefreshVerdict, Requested, SessionFacts, judge_refresh, network, resolve_scope};
use crate::access::{Role, Scope};
use crate::ids::BusinessUnitId;

fn standing(is_superadmin: bool, unit: Option<Option<Role>>) -> Standing {
    Standing {
        email: "a@plumbline.test".into(),
        is_superadmin,
        disabled: false,
        must_change_password: false,
        generation: 1,
        epoch: 1,
        session_live: true,
        at: DateTime::UNIX_EPOCH,
        unit: unit.map(|role| NamedUnit { id: unit_id(), role, archived: false }),
    }
}

fn archived(mut standing: Standing) -> Standing {
    standing.unit = standing.unit.map(|unit| NamedUnit { archived: true, ..unit });
    standing
}

fn unit_id() -> BusinessUnitId {
    BusinessUnitId(Uuid::from_u128(7))
}

fn here(role: Role, archived: bool) -> Option<Place> {
    Some(Place { scope: Scope::One(unit_id()), role, archived })
}

#[test]
fn a_superadmin_acts_everywhere_or_in_one_unit() {
    let all = Some(Place { scope: Scope::All, role: Role::Admin, archived: false });
    assert_eq!(resolve_scope(&standing(true, None), Requested::Nothing).ok(), all);
    assert_eq!(resolve_scope(&standing(true, Some(Some(Role::Viewer))), Requested::All).ok(), all);
    let named = resolve_scope(&standing(true, Some(None)), Requested::Slug("blue"));
    assert_eq!(named.ok(), here(Role::Admin, false));
    let unknown = resolve_scope(&standing(true, None), Requested::Slug("blue"));
    assert!(matches!(unknown, Err(SessionError::UnitNotFound)));
}

#[test]
fn a_member_acts_only_where_they_belong() {
    let member = standing(false, Some(Some(Role::Operator)));
    assert_eq!(resolve_scope(&member, Requested::Nothing).ok(), here(Role::Operator, false));
    assert_eq!(resolve_scope(&member, Requested::Slug("blue")).ok(), here(Role::Operator, false));
    assert!(matches!(resolve_scope(&member, Requested::All), Err(SessionError::AllForbidden)));
    let foreign = standing(false, Some(None));
    assert!(matches!(resolve_scope(&foreign, Requested::Slug("red")), Err(SessionError::NotAMember)));
    let nowhere = standing(false, None);
    assert!(matches!(resolve_scope(&nowhere, Requested::Nothing), Err(SessionError::NoMemberships)));
}

#[test]
fn an_archived_unit_is_seen_by_superadmins_and_explained_to_its_members_only() {
    let slug = Requested::Slug("blue");
    let seen = resolve_scope(&archived(standing(true, Some(None))), slug);
    assert_eq!(seen.ok(), here(Role::Admin, true));
    let member = archived(standing(false, Some(Some(Role::Admin))));
    for requested in [slug, Requested::Nothing] {
        assert!(matches!(resolve_scope(&member, requested), Err(SessionError::UnitArchived)));
    }
    let foreign = archived(standing(false, Some(None)));
    assert!(matches!(resolve_scope(&foreign, slug), Err(SessionError::NotAMember)));
}

#[test]
fn one_network_is_one_machine_or_one_customer() {
    for (address, expected) in [
        ("192.0.2.7", "192.0.2.7/32"),
        ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("::1", "::/64"),
    ] {
        assert_eq!(network(address.parse().unwrap()), expected);
    }
}

#[test]
fn an_origin_keeps_what_can_be_shown() {
    let long = format!("plumb/1\u{1b}[31m\n{}", "x".repeat(300));
    let origin = Origin::new(Some("::ffff:192.0.2.7"), Some(&long));
    assert_eq!(origin.address, Some("192.0.2.7".parse().unwrap()));
    let agent = origin.user_agent.unwrap();
    assert!(agent.starts_with("plumb/1[31mx") && agent.chars().count() == 255, "{agent}");
    let nothing = Origin::new(Some("nonsense"), Some("\n"));
    assert!(nothing.address.is_none() && nothing.user_agent.is_none());
}

#[test]
fn headers_are_read_with_and_without_spaces() {
    assert_eq!(Requested::parse(None), Requested::Nothing);
    assert_eq!(Requested::parse(Some("  ")), Requested::Nothing);
    assert_eq!(Requested::parse(Some(" all ")), Requested::All);
    assert_eq!(Requested::parse(Some("blue")), Requested::Slug("blue"));
}

#[test]
fn only_the_newest_refresh_token_rotates() {
    let at = |seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
    let facts = |current, seconds| SessionFacts {
        live: true,
        current,
        sequence: 5,
        refreshed_at: at(0),
        at: at(seconds),
    };
    assert_eq!(judge_refresh(5, facts(true, 1000)), RefreshVerdict::Rotate);
    assert_eq!(judge_refresh(4, facts(false, 3)), RefreshVerdict::Raced);
    assert_eq!(judge_refresh(4, facts(false, 11)), RefreshVerdict::Reused);
    assert_eq!(judge_refresh(3, facts(false, 3)), RefreshVerdict::Reused);
    assert_eq!(
        judge_refresh(5, facts(false, 3)),
        RefreshVerdict::Reused,
        "another secret with the same number"
    );
    let over = SessionFacts { live: false, ..facts(true, 3) };
    assert_eq!(judge_refresh(5, over), RefreshVerdict::Over);
}
