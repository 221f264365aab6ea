//! The key of a service account: read strictly, kept as what was understood of it.
//!
//! Google's libraries take other kinds of files, too, which name programs to run, files to read and addresses to send
//! secrets to. Only a plain key is taken, and only its known fields are kept: nothing that a library could read
//! otherwise than we did.

use serde::{Deserialize, Serialize};

use super::rules::is_client_email;
use crate::cloud_accounts::rules::refuse;
use crate::workspaces::InvalidField;

const FIELD: &str = "service_account_json";
const BYTES: std::ops::RangeInclusive<usize> = 50..=16 << 10;
/// Where a key is traded for tokens. Another address would get a signature that is worth a token.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const UNIVERSE: &str = "googleapis.com";

/// A key. What it holds is never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceAccount {
    #[serde(rename = "type")]
    kind: String,
    project_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    private_key_id: Option<String>,
    private_key: String,
    client_email: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(default = "token_uri")]
    token_uri: String,
    #[serde(default = "universe")]
    universe_domain: String,
}

fn token_uri() -> String {
    TOKEN_URI.into()
}

fn universe() -> String {
    UNIVERSE.into()
}

impl std::fmt::Debug for ServiceAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceAccount").field("client_email", &self.client_email).finish_non_exhaustive()
    }
}

impl ServiceAccount {
    /// Reads the file that GCP gives. It must be of the project.
    pub(super) fn parse(text: &str, project_id: &str) -> Result<Self, InvalidField> {
        if !BYTES.contains(&text.len()) {
            return refuse(FIELD, "must have 50 bytes to 16 KiB");
        }
        // serde's own words could repeat a piece of the key.
        let Ok(read) = serde_json::from_str::<Self>(text) else {
            return refuse(
                FIELD,
                "must be a JSON object with type, project_id, client_email and private_key, each once and each a string",
            );
        };
        read.check(project_id)?;
        Ok(read)
    }

    fn check(&self, project_id: &str) -> Result<(), InvalidField> {
        if self.kind != "service_account" {
            return refuse(FIELD, "type: must be service_account");
        }
        if self.project_id != project_id {
            return refuse(FIELD, "project_id: must be the project_id that is registered");
        }
        if !is_client_email(&self.client_email) {
            return refuse(FIELD, "client_email: must be the address of a service account");
        }
        let key = self.private_key.trim();
        if !key.starts_with("-----BEGIN PRIVATE KEY-----") || !key.ends_with("-----END PRIVATE KEY-----") {
            return refuse(FIELD, "private_key: must be a private key in PEM");
        }
        let ids = [&self.private_key_id, &self.client_id];
        if ids
            .into_iter()
            .flatten()
            .any(|id| id.len() > 128 || !id.bytes().all(|b| b.is_ascii_alphanumeric()))
        {
            return refuse(FIELD, "private_key_id and client_id: must have at most 128 letters and digits");
        }
        if self.token_uri != TOKEN_URI || self.universe_domain != UNIVERSE {
            return refuse(FIELD, "token_uri and universe_domain: must be those of Google");
        }
        Ok(())
    }

    /// The service account.
    pub fn client_email(&self) -> &str {
        &self.client_email
    }

    /// Tells keys of one account apart; no secret.
    pub fn private_key_id(&self) -> Option<&str> {
        self.private_key_id.as_deref()
    }

    /// The secret in it.
    pub fn private_key(&self) -> &str {
        &self.private_key
    }

    /// As Google's libraries read it, on one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain strings are JSON")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn key() -> Value {
        json!({
            "type": "service_account",
            "project_id": "payments-prod",
            "private_key_id": "0123456789abcdef",
            "private_key": "-----BEGIN PRIVATE KEY-----\nMIIsecret\n-----END PRIVATE KEY-----\n",
            "client_email": "plumbline@payments-prod.iam.gserviceaccount.com",
            "client_id": "1234567890",
            "auth_uri": "https://accounts.google.com/o/oauth2/auth",
            "token_uri": TOKEN_URI,
            "universe_domain": UNIVERSE,
        })
    }

    #[test]
    fn a_key_is_kept_as_what_was_understood_of_it() {
        let read = ServiceAccount::parse(&key().to_string(), "payments-prod").unwrap();
        let kept: Value = serde_json::from_str(&read.to_json()).unwrap();
        let mut expected = key();
        expected.as_object_mut().unwrap().remove("auth_uri");
        assert_eq!(kept, expected);
        assert!(!format!("{read:?}").contains("MIIsecret"));
    }

    #[test]
    fn whatever_is_no_plain_key_of_the_project_is_refused_without_being_repeated() {
        let changed = |field: &str, value: Value| {
            let mut key = key();
            key[field] = value;
            key.to_string()
        };
        let twice = key().to_string().replacen('{', "{\"type\":\"external_account\",", 1);
        let without = |field: &str| {
            let mut key = key();
            key.as_object_mut().unwrap().remove(field);
            key.to_string()
        };
        for text in [
            "MIIsecret".repeat(20),
            twice,
            changed("type", json!("external_account")),
            changed("project_id", json!("other-project")),
            changed("client_email", json!("somebody@example.com")),
            changed("client_email", json!("a\nb@x.gserviceaccount.com")),
            changed("private_key", json!("MIIsecret")),
            changed("private_key", json!(["MIIsecret"])),
            changed("token_uri", json!("https://example.com/token")),
            changed("universe_domain", json!("example.com")),
            changed("private_key_id", json!("a b")),
            without("private_key"),
            without("client_email"),
            "{}".into(),
            " ".repeat(17 << 10),
        ] {
            let refused = ServiceAccount::parse(&text, "payments-prod").unwrap_err();
            assert_eq!(refused.field, FIELD);
            assert!(!refused.to_string().contains("MIIsecret"), "{refused}");
        }
    }
}
