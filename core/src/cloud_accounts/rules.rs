//! What fields that several kinds of accounts have may be.

use uuid::Uuid;

use crate::workspaces::InvalidField;

const NAME_CHARS_MAX: usize = 120;
const DESCRIPTION_CHARS_MAX: usize = 1000;
const REGION_CHARS_MAX: usize = 32;

/// Refuses a field with a reason.
pub(super) fn refuse<T>(field: &'static str, reason: impl Into<String>) -> Result<T, InvalidField> {
    Err(InvalidField::new(field, reason))
}

/// A name for people.
pub(super) fn check_name(name: &str) -> Result<(), InvalidField> {
    let length = name.chars().count();
    let is_plain = !name.chars().any(char::is_control) && name.trim() == name;
    if is_plain && (1..=NAME_CHARS_MAX).contains(&length) {
        return Ok(());
    }
    refuse("name", "must have 1 to 120 characters, none of them control characters, and no space at its ends")
}

/// Words for people.
pub(super) fn check_description(description: Option<&str>) -> Result<(), InvalidField> {
    let is_fine = |text: &str| {
        text.chars().count() <= DESCRIPTION_CHARS_MAX
            && !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
    };
    if description.is_none_or(is_fine) {
        return Ok(());
    }
    refuse(
        "description",
        "must have at most 1,000 characters, no control characters but line breaks and tabs",
    )
}

/// Words of lower-case letters and digits with dashes between: a region's or a location's name. It becomes a part of
/// host names.
pub(super) fn check_region(field: &'static str, region: &str) -> Result<(), InvalidField> {
    let word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let is_fine = region.len() <= REGION_CHARS_MAX
        && region.starts_with(|c: char| c.is_ascii_lowercase())
        && region.split('-').all(word);
    if is_fine { Ok(()) } else { refuse(field, "must be lower-case words and digits with dashes between") }
}

/// A UUID in its one spelling.
pub(super) fn check_uuid(field: &'static str, text: &str) -> Result<String, InvalidField> {
    match Uuid::try_parse(text) {
        // The other spellings that a parser takes are not what clouds print.
        Ok(id) if text.len() == 36 => Ok(id.hyphenated().to_string()),
        _ => refuse(field, "must be a UUID, such as 00000000-0000-0000-0000-000000000000"),
    }
}

/// A bucket of S3 or GCS, without the names that only old buckets have.
pub(super) fn check_bucket(field: &'static str, bucket: Option<&str>) -> Result<(), InvalidField> {
    let is_fine = |bucket: &str| {
        let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        (3..=63).contains(&bucket.len())
            && bucket.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._".contains(&b))
            && bucket.starts_with(edge)
            && bucket.ends_with(edge)
            && !bucket.contains("..")
            && bucket.parse::<std::net::Ipv4Addr>().is_err()
    };
    if bucket.is_none_or(is_fine) {
        return Ok(());
    }
    refuse(
        field,
        "must have 3 to 63 lower-case letters, digits, dashes and dots, a letter or digit at both ends",
    )
}

/// Text of a secret that is one word: no spaces, nothing that could end a line or a variable.
pub(super) fn check_secret_word(
    field: &'static str,
    secret: &str,
    bytes: std::ops::RangeInclusive<usize>,
) -> Result<(), InvalidField> {
    if bytes.contains(&secret.len()) && secret.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(());
    }
    // Never the value: it is a secret.
    refuse(field, format!("must have {} to {} visible ASCII characters", bytes.start(), bytes.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_buckets_regions_and_ids_are_checked() {
        assert!(check_name("Payments (prod)").is_ok());
        for bad in ["", " a", "a\n", &"x".repeat(121)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        for bad in ["ab", "Ab-c", "-abc", "abc-", "a..b", "10.0.0.1", "a/b", &"a".repeat(64)] {
            assert!(check_bucket("state_bucket", Some(bad)).is_err(), "{bad}");
        }
        assert!(check_bucket("state_bucket", Some("states.of-payments-1")).is_ok());
        for bad in ["", "EU-west-1", "eu_west", "eu--west", "-eu", "eu.west", "1eu"] {
            assert!(check_region("default_region", bad).is_err(), "{bad}");
        }
        let upper = "0F9619FF-8B86-D011-B42D-00CF4FC964FF";
        assert_eq!(check_uuid("tenant_id", upper).as_deref(), Ok(upper.to_lowercase().as_str()));
        for bad in ["{0f9619ff-8b86-d011-b42d-00cf4fc964ff}", "0f9619ff8b86d011b42d00cf4fc964ff", "x"] {
            assert!(check_uuid("tenant_id", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refused_secret_is_not_repeated() {
        let refused = check_secret_word("client_secret", "hunter 2 hunter", 4..=64).unwrap_err();
        assert!(!refused.to_string().contains("hunter"), "{refused}");
    }
}
