use chrono::DateTime;
use uuid::Uuid;

use super::model::{Life, NewApiKey, Rotation, Standing};
use super::{ApiKeyError, rules};
use crate::access::{Capability, Role};
use crate::ids::{ApiKeyId, BusinessUnitId, UserId, WorkspaceId};
use crate::sessions::SessionError;

fn standing(capability: Capability, owner_role: Option<Role>) -> Standing {
    Standing {
        id: ApiKeyId(Uuid::nil()),
        name: "ci".into(),
        business_unit_id: BusinessUnitId(Uuid::nil()),
        capability,
        workspaces: None,
        revoked: false,
        expired: false,
        outdated: false,
        unit_archived: false,
        owner: UserId(Uuid::nil()),
        owner_role,
        at: DateTime::UNIX_EPOCH,
    }
}

#[test]
fn a_key_acts_with_the_lesser_of_its_owners_role_and_its_capability() {
    use Capability::{Admin, Apply, Plan, Read};
    for (capability, owner, acts_as) in [
        (Read, Role::Admin, Role::Viewer),
        (Plan, Role::Admin, Role::Operator),
        (Apply, Role::Admin, Role::Operator),
        (Admin, Role::Admin, Role::Admin),
        (Admin, Role::Operator, Role::Operator),
        (Apply, Role::Viewer, Role::Viewer),
        (Read, Role::Viewer, Role::Viewer),
    ] {
        let judged = rules::judge(&standing(capability, Some(owner)));
        assert_eq!(judged.unwrap(), acts_as, "{capability:?} of {owner:?}");
    }
}

#[test]
fn a_dead_key_is_not_believed_and_says_why() {
    let live = || standing(Capability::Admin, Some(Role::Admin));
    for (dead, why) in [
        (Standing { revoked: true, ..live() }, "revoked"),
        (Standing { expired: true, ..live() }, "expired"),
        (Standing { outdated: true, ..live() }, "restored"),
        (Standing { owner_role: None, ..live() }, "owner"),
    ] {
        let error = rules::judge(&dead).unwrap_err();
        assert!(matches!(error, SessionError::Unauthenticated(text) if text.contains(why)), "{error}");
    }
    let archived = rules::judge(&Standing { unit_archived: true, ..live() }).unwrap_err();
    assert!(matches!(archived, SessionError::KeyUnitArchived), "{archived}");
}

#[test]
fn names_and_lists_that_cannot_be_are_refused() {
    let new = |name: &str, workspace_ids| NewApiKey {
        name: name.into(),
        capability: Capability::Read,
        workspace_ids,
        expires_at: None,
    };
    let some = |count| Some(vec![WorkspaceId(Uuid::nil()); count]);
    for good in [new("ci", None), new(&"x".repeat(255), some(1)), new("é", some(500))] {
        rules::check(&good).unwrap();
    }
    for (bad, wrong) in [
        (new("", None), "name"),
        (new("  ", None), "name"),
        (new("a\nb", None), "name"),
        (new(&"x".repeat(256), None), "name"),
        (new("ci", some(0)), "workspace_ids"),
        (new("ci", some(501)), "workspace_ids"),
    ] {
        let error = rules::check(&bad).unwrap_err();
        assert!(matches!(error, ApiKeyError::Invalid { field, .. } if field == wrong), "{error}");
    }
}

#[test]
fn an_overlap_is_a_day_unless_given_and_a_week_at_most() {
    let asked = |overlap_hours| rules::overlap_hours(&Rotation { overlap_hours, expires_at: None });
    assert_eq!(asked(None).unwrap(), 24);
    assert_eq!(asked(Some(0)).unwrap(), 0);
    assert_eq!(asked(Some(168)).unwrap(), 168);
    assert!(asked(Some(169)).is_err());
}

#[test]
fn only_a_live_key_gets_a_new_token_and_a_successor_only_once() {
    let live = Life { revoked: false, expired: false, rotated: false };
    rules::check_rotatable(live).unwrap();
    rules::check_alive(Life { rotated: true, ..live }).unwrap();
    for dead in [Life { revoked: true, ..live }, Life { expired: true, ..live }] {
        assert!(matches!(rules::check_alive(dead), Err(ApiKeyError::Dead(_))));
        assert!(matches!(rules::check_rotatable(dead), Err(ApiKeyError::Dead(_))));
    }
    assert!(matches!(rules::check_rotatable(Life { rotated: true, ..live }), Err(ApiKeyError::Rotated)));
}
