//! A service account's key file, without what else it could say: `object_store` would call an address in it, or sign
//! nothing, if it said so.

use plumbline_core::ports::BlobError;
use plumbline_core::secrets::{SecretText, exposed};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, Serialize)]
struct Key {
    #[serde(rename = "type")]
    kind: String,
    client_email: String,
    #[serde(serialize_with = "exposed")]
    private_key: SecretText,
    #[serde(default)]
    private_key_id: String,
}

pub(super) fn only_the_key(file: &SecretText) -> Result<SecretText, BlobError> {
    let refused = || BlobError::Refused("this is no key file of a service account".into());
    // What serde says of it may quote it.
    let key: Key = serde_json::from_str(file.expose()).map_err(|_| refused())?;
    if key.kind != "service_account" {
        return Err(refused());
    }
    serde_json::to_string(&key).map(SecretText::new).map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use plumbline_core::secrets::SecretText;

    use super::only_the_key;

    #[test]
    fn nothing_but_the_key_is_taken_from_a_file() {
        let file = SecretText::new(
            r#"{"type":"service_account","client_email":"a@p.example","private_key":"k","private_key_id":"i",
                "gcs_base_url":"https://elsewhere.example","disable_oauth":true,"token_uri":"https://elsewhere.example"}"#,
        );
        let kept: serde_json::Value =
            serde_json::from_str(only_the_key(&file).expect("a key").expose()).expect("JSON");
        let expected = serde_json::json!({
            "type": "service_account", "client_email": "a@p.example", "private_key": "k", "private_key_id": "i"
        });
        assert_eq!(kept, expected);
    }

    #[test]
    fn what_is_no_key_file_is_refused_without_being_quoted() {
        for file in
            ["hunter2", r#"{"type":"authorized_user","client_email":"a","private_key":"hunter2"}"#, "{}"]
        {
            let error = only_the_key(&SecretText::new(file)).expect_err("no key");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
