//! What somebody was given to get in with, when they have become more, or its maker less, since then.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use super::{People, Person};
use crate::plane::{PASSWORD, slug};

const CHOSEN: &str = "chosen by the admin of blue";

/// An admin of blue, and somebody of blue alone.
struct Reach {
    people: People,
    admin: Person,
    eve: Person,
}

impl Reach {
    async fn new() -> Self {
        let people = People::new().await;
        let admin = people.person(&[(people.blue, Role::Admin)]).await;
        let eve = people.person(&[(people.blue, Role::Viewer)]).await;
        Self { people, admin, eve }
    }

    async fn invite(&self) -> Value {
        let path = format!("users/{}/invite", self.eve.id);
        let (status, invite) = self.people.call(&self.admin.token, "POST", &path, None).await;
        assert_eq!(status, StatusCode::OK, "{invite}");
        invite["token"].clone()
    }

    async fn set_password(&self) {
        let path = format!("users/{}/password", self.eve.id);
        let (status, _) =
            self.people.call(&self.admin.token, "PUT", &path, json!({ "password": CHOSEN })).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
    }

    /// What puts the person out of the admin's hands, each on a new plane.
    async fn grow(&self, how: &str) {
        let eve = format!("users/{}", self.eve.id);
        let admin = format!("users/{}", self.admin.id);
        let red = json!({ "add_memberships": [{ "business_unit_id": self.people.red, "role": "viewer" }] });
        let (path, body) = match how {
            "superadmin" => (eve, json!({ "is_superadmin": true })),
            "another unit" => (eve, red),
            "a demoted maker" => {
                let fewer = json!([{ "business_unit_id": self.people.blue, "role": "operator" }]);
                (admin, json!({ "add_memberships": fewer }))
            }
            "a removed maker" => (admin, json!({ "remove_memberships": [self.people.blue] })),
            other => panic!("{other}"),
        };
        let (status, after) = self.people.as_root("PATCH", &path, body).await;
        assert_eq!(status, StatusCode::OK, "{how}: {after}");
    }
}

const WAYS: [&str; 4] = ["superadmin", "another unit", "a demoted maker", "a removed maker"];

#[tokio::test]
async fn an_invitation_ends_when_the_person_is_out_of_its_makers_reach() {
    for how in WAYS {
        let reach = Reach::new().await;
        let token = reach.invite().await;
        reach.grow(how).await;
        let body = json!({ "token": token, "password": CHOSEN });
        let (status, problem) = reach.people.call("", "POST", "auth/accept-invite", body.clone()).await;
        assert_eq!((status, slug(&problem)), (StatusCode::UNAUTHORIZED, "invite-invalid"), "{how}");
        let stolen = json!({ "email": reach.eve.email, "password": CHOSEN });
        assert_eq!(
            reach.people.call("", "POST", "auth/token", stolen).await.0,
            StatusCode::UNAUTHORIZED,
            "{how}"
        );
        reach.people.plane.login(&reach.eve.email).await;
    }
    // The refusals are for what changed: where nothing did, the same steps lead in.
    let reach = Reach::new().await;
    let body = json!({ "token": reach.invite().await, "password": CHOSEN });
    assert_eq!(reach.people.call("", "POST", "auth/accept-invite", body).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_password_that_was_set_by_somebody_with_less_reach_by_now_leads_nowhere() {
    let change = async |reach: &Reach| {
        let given = json!({ "email": reach.eve.email, "password": CHOSEN });
        let (status, pair) = reach.people.call("", "POST", "auth/token", given).await;
        assert_eq!(status, StatusCode::OK, "{pair}");
        let token = pair["access_token"].as_str().unwrap().to_owned();
        let body = json!({ "current_password": CHOSEN, "new_password": "somebody elses by now" });
        let changed = reach.people.call(&token, "PUT", "me/password", body).await;
        (changed, reach.people.call(&token, "GET", "workspaces", None).await.0)
    };
    for how in WAYS {
        let reach = Reach::new().await;
        reach.set_password().await;
        reach.grow(how).await;
        let ((status, problem), beyond) = change(&reach).await;
        assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "forbidden"), "{how}: {problem}");
        assert_eq!(beyond, StatusCode::FORBIDDEN, "{how}");
        // Whoever reaches them now gives them a way in.
        let path = format!("users/{}/password", reach.eve.id);
        assert_eq!(
            reach.people.as_root("PUT", &path, json!({ "password": PASSWORD })).await.0,
            StatusCode::NO_CONTENT
        );
    }
    let reach = Reach::new().await;
    reach.set_password().await;
    let ((status, problem), beyond) = change(&reach).await;
    assert_eq!((status, beyond), (StatusCode::NO_CONTENT, StatusCode::OK), "{problem}");
}

#[tokio::test]
async fn a_sign_in_with_the_old_password_waits_for_its_change_and_is_refused() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Admin)]).await;
    let mut conn = people.plane.db().conn().await.unwrap();
    // As a change does it: the new hash first, then the end of the sessions that are seen.
    let changing = conn.begin().await.unwrap();
    const CHANGE: &str = "UPDATE users SET password_hash = 'another' WHERE email = $1";
    changing.execute(CHANGE, &[&ada.email]).await.unwrap();
    let old = json!({ "email": ada.email, "password": PASSWORD });
    let sign_in = people.call("", "POST", "auth/token", old);
    let change = async {
        people.plane.until_a_lock_is_waited_for().await;
        changing.commit().await.unwrap();
    };
    let ((status, problem), ()) = tokio::join!(sign_in, change);
    assert_eq!((status, slug(&problem)), (StatusCode::UNAUTHORIZED, "wrong-credentials"), "{problem}");
}
