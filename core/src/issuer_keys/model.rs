//! Documents of the issuer, and its keys as people see them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::IssuerKeyId;

/// What everybody may know of the issuer (OpenID Connect Discovery).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovery {
    /// Its name: the address below which this document lies.
    pub issuer: String,
    /// Where its keys are.
    pub jwks_uri: String,
    /// It signs nobody in: there is nothing but tokens.
    pub response_types_supported: Vec<String>,
    /// Everybody sees the same subject.
    pub subject_types_supported: Vec<String>,
    /// RSA with SHA-256.
    pub id_token_signing_alg_values_supported: Vec<String>,
    /// What tokens say.
    pub claims_supported: Vec<String>,
}

/// A public key as verifiers read it (RFC 7517). Has no field that could hold a private part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jwk {
    /// `RSA`.
    pub kty: String,
    /// `sig`.
    #[serde(rename = "use")]
    pub usage: String,
    /// `RS256`.
    pub alg: String,
    /// Named by the header of the tokens that it signed.
    pub kid: IssuerKeyId,
    /// Modulus.
    pub n: String,
    /// Exponent.
    pub e: String,
}

/// The published keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jwks {
    /// The one that signs, the next one, and those before it for a while.
    pub keys: Vec<Jwk>,
}

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IssuerKeyStatus {
    /// Published, and will sign after the next rotation.
    Next,
    /// Signs.
    Signing,
    /// Signs no more.
    Retired,
}

/// One key, without what is secret of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct IssuerKeyView {
    /// Named by the header of the tokens that it signed.
    pub kid: IssuerKeyId,
    /// Where it stands.
    pub status: IssuerKeyStatus,
    /// The key of a KMS; absent where the private key is sealed in the database.
    pub kms_key: Option<String>,
    /// Since when it is published.
    pub created_at: DateTime<Utc>,
    /// Since when it signs.
    pub signs_since: Option<DateTime<Utc>>,
    /// Since when it signs no more.
    pub retired_at: Option<DateTime<Utc>>,
    /// Until when it is published.
    pub published_until: Option<DateTime<Utc>>,
}

/// How to change the key that signs.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RotateIssuerKey {
    /// The old key has leaked: it is published no more, so that its tokens are refused wherever its publication is looked
    /// at again, and the next one signs even if it was published just now.
    pub at_once: bool,
}

/// What a rotation did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct RotatedIssuerKey {
    /// The key that signs no more.
    pub retired: Option<IssuerKeyView>,
    /// The key that signs now. Absent if none was ready: it is made when a run next needs a token.
    pub signing: Option<IssuerKeyView>,
}
