//! The claims of a token that was found genuine, and of the provider's `userinfo`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

/// What a token's middle part says. The caller has checked its signature.
pub(crate) fn of_token(token: &str) -> Option<Map<String, Value>> {
    let payload = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// Takes from `userinfo` what the token does not say, if both are about the same person.
pub(crate) fn add(claims: &mut Map<String, Value>, mut more: Map<String, Value>) -> bool {
    if more.get("sub").is_none() || more.get("sub") != claims.get("sub") {
        return false;
    }
    // An address and whether it is verified belong together, from whichever of both.
    if claims.contains_key("email") {
        more.remove("email");
        more.remove("email_verified");
    } else {
        claims.remove("email_verified");
    }
    for (name, value) in more {
        claims.entry(name).or_insert(value);
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn userinfo_adds_and_never_replaces() {
        let mut claims = object(json!({ "sub": "1", "email": "a@b.test", "email_verified": false }));
        let more =
            object(json!({ "sub": "1", "email": "c@d.test", "email_verified": true, "groups": ["x"] }));
        assert!(add(&mut claims, more));
        let expected = json!({ "sub": "1", "email": "a@b.test", "email_verified": false, "groups": ["x"] });
        assert_eq!(Value::Object(claims), expected);
    }

    #[test]
    fn one_says_the_address_and_the_same_one_says_whether_it_is_verified() {
        let mut claims = object(json!({ "sub": "1", "email": "a@b.test" }));
        assert!(add(&mut claims, object(json!({ "sub": "1", "email_verified": true }))));
        assert!(!claims.contains_key("email_verified"));
        let mut claims = object(json!({ "sub": "1", "email_verified": true }));
        assert!(add(&mut claims, object(json!({ "sub": "1", "email": "a@b.test" }))));
        assert!(!claims.contains_key("email_verified"));
    }

    #[test]
    fn userinfo_about_somebody_else_is_refused() {
        let mut claims = object(json!({ "sub": "1" }));
        assert!(!add(&mut claims, object(json!({ "sub": "2", "groups": ["x"] }))));
        assert!(!add(&mut claims, object(json!({ "groups": ["x"] }))));
        assert!(!claims.contains_key("groups"));
    }
}
