//! What a slug and a name must look like. The schema repeats both.

use super::BusinessUnitError;
use crate::text::is_line;

/// The unit that every installation has.
pub(super) const DEFAULT_SLUG: &str = "default";

/// Refuses what cannot be a slug.
pub fn check_slug(slug: &str) -> Result<(), BusinessUnitError> {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let shaped = (3..=64).contains(&slug.len())
        && slug.bytes().all(inner)
        && !slug.starts_with('-')
        && !slug.ends_with('-');
    if shaped && slug != "all" {
        return Ok(());
    }
    Err(BusinessUnitError::Invalid {
        field: "slug",
        reason: "must be 3 to 64 lower-case letters, digits and dashes, begin and end with a letter or digit, and \
                 not be `all`",
    })
}

/// Refuses what cannot be a name.
pub fn check_name(name: &str) -> Result<(), BusinessUnitError> {
    if is_line(name, 255) {
        return Ok(());
    }
    Err(BusinessUnitError::Invalid {
        field: "name",
        reason: "must be 1 to 255 characters, not blank, without control characters",
    })
}
