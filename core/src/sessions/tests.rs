//! The pure parts of sessions.

use chrono::{DateTime, TimeDelta};
use uuid::Uuid;

use super::SessionError;
use super::model::Standing;
use super::rules::{RefreshVerdict, Requested, SessionFacts, judge_refresh, resolve_scope};
use crate::access::{Role, Scope};
use crate::ids::BusinessUnitId;

fn standing(is_superadmin: bool, unit: Option<Option<Role>>) -> Standing {
    Standing {
        email: "a@plumbline.test".into(),
        is_superadmin,
        disabled: false,
        generation: 1,
        epoch: 1,
        session_live: true,
        at: DateTime::UNIX_EPOCH,
        unit: unit.map(|role| (unit_id(), role)),
    }
}

fn unit_id() -> BusinessUnitId {
    BusinessUnitId(Uuid::from_u128(7))
}

#[test]
fn a_superadmin_acts_everywhere_or_in_one_unit() {
    let all = Some((Scope::All, Role::Admin));
    assert_eq!(resolve_scope(&standing(true, None), Requested::Nothing).ok(), all);
    assert_eq!(resolve_scope(&standing(true, Some(Some(Role::Viewer))), Requested::All).ok(), all);
    let named = resolve_scope(&standing(true, Some(None)), Requested::Slug("blue"));
    assert_eq!(named.ok(), Some((Scope::One(unit_id()), Role::Admin)));
    let unknown = resolve_scope(&standing(true, None), Requested::Slug("blue"));
    assert!(matches!(unknown, Err(SessionError::UnitNotFound)));
}

#[test]
fn a_member_acts_only_where_they_belong() {
    let member = standing(false, Some(Some(Role::Operator)));
    let here = Some((Scope::One(unit_id()), Role::Operator));
    assert_eq!(resolve_scope(&member, Requested::Nothing).ok(), here);
    assert_eq!(resolve_scope(&member, Requested::Slug("blue")).ok(), here);
    assert!(matches!(resolve_scope(&member, Requested::All), Err(SessionError::AllForbidden)));
    let foreign = standing(false, Some(None));
    assert!(matches!(resolve_scope(&foreign, Requested::Slug("red")), Err(SessionError::NotAMember)));
    let nowhere = standing(false, None);
    assert!(matches!(resolve_scope(&nowhere, Requested::Nothing), Err(SessionError::NoMemberships)));
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
