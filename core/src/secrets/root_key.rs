//! What may be a root key. Everything that is sealed stands or falls with it, so what was never meant to be one is refused.

use std::collections::BTreeSet;

const CHARACTERS_MIN: usize = 32;
/// A phrase of words has more, and so has every random text of this length in hex or base64.
const DISTINCT_CHARACTERS_MIN: usize = 8;
/// What templates and examples say, without blanks and dashes. Long enough that chance does not make them.
const PLACEHOLDERS: [&str; 9] = [
    "changeme",
    "changethis",
    "replaceme",
    "replacethis",
    "replacewith",
    "placeholder",
    "yourrootkey",
    "encryptionkeyhere",
    "insertyourkey",
];

/// Why a text is no root key. Never holds the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootKeyError {
    /// It could be guessed.
    #[error("a root key has at least 32 characters; there is no default")]
    TooShort,
    /// Usually the line break of a file, which the next reader of the file leaves out.
    #[error("a root key neither begins nor ends with white space")]
    WhiteSpace,
    /// Somebody forgot to set it.
    #[error("this is a placeholder, not a root key: make one, for example with `openssl rand -hex 32`")]
    Placeholder,
    /// The same few characters again and again.
    #[error(
        "a root key has more than a few different characters: make one, for example with `openssl rand -hex 32`"
    )]
    Monotonous,
    /// The same key twice in the ring.
    #[error("a previous root key is another one than the current")]
    Repeated,
}

/// Refuses what was hardly meant as a secret of somebody's own.
pub(super) fn check(root: &str) -> Result<(), RootKeyError> {
    if root.trim().len() != root.len() {
        return Err(RootKeyError::WhiteSpace);
    }
    if root.len() < CHARACTERS_MIN {
        return Err(RootKeyError::TooShort);
    }
    let letters: String = root.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let is_bracketed = root.starts_with('<') && root.ends_with('>') || root.starts_with("${");
    if is_bracketed || PLACEHOLDERS.iter().any(|word| letters.contains(word)) {
        return Err(RootKeyError::Placeholder);
    }
    if root.chars().collect::<BTreeSet<_>>().len() < DISTINCT_CHARACTERS_MIN {
        return Err(RootKeyError::Monotonous);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_meant_as_a_root_key_is_refused() {
        let blank = " ".repeat(40);
        for (text, expected) in [
            ("", RootKeyError::TooShort),
            ("31 characters are not enough: 31", RootKeyError::TooShort),
            (blank.as_str(), RootKeyError::WhiteSpace),
            ("d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb76\n", RootKeyError::WhiteSpace),
            ("CHANGE-ME-CHANGE-ME-CHANGE-ME-CHANGE-ME", RootKeyError::Placeholder),
            ("replace_this_with_at_least_32_characters", RootKeyError::Placeholder),
            ("<your root key of at least 32 characters>", RootKeyError::Placeholder),
            ("${CREDENTIAL_ENCRYPTION_KEY_FROM_VAULT}", RootKeyError::Placeholder),
            ("0000000000000000000000000000000000000000", RootKeyError::Monotonous),
            ("abcabcabcabcabcabcabcabcabcabcabcabcabca", RootKeyError::Monotonous),
        ] {
            let text = if text.starts_with("31 ") { &text[..31] } else { text };
            assert_eq!(check(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn random_digits_and_long_phrases_are_root_keys() {
        for text in [
            "d7a8fbb307d7809469ca9abcb0082e4f",
            "X9v0q/2Yb7u+1mZk8sTtQ3rLwE5nHcJd6fAoGpIyKeM=",
            "a root key for tests only, 32 characters or more",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }
}
