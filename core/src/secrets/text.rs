//! Text that is never shown.

use serde::{Deserialize, Deserializer, Serializer};
use zeroize::Zeroizing;

/// A password, a token, an opened value: text whose `Debug` says nothing, that has neither `Display` nor `Serialize`, and
/// whose memory is wiped when it is dropped. It can be lent out as `&str`; a copy made of that is the borrower's to guard.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes the text over.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Lends the text to whoever must have it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretText(..)")
    }
}

impl std::ops::Deref for SecretText {
    type Target = str;

    fn deref(&self) -> &str {
        self.expose()
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// For `#[serde(serialize_with)]` on a field of what is only serialised to be sealed.
pub fn exposed<S: Serializer>(secret: &SecretText, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret)
}

#[cfg(test)]
mod tests {
    use super::SecretText;

    #[test]
    fn it_is_lent_out_but_never_shown() {
        let secret: SecretText = serde_json::from_str("\"hunter2\"").expect("text");
        assert_eq!(secret.expose(), "hunter2");
        assert_eq!(secret.len(), 7);
        assert_eq!(
            format!("{secret:?} {:#?}", Some(&secret)),
            "SecretText(..) Some(\n    SecretText(..),\n)"
        );
    }
}
