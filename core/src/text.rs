//! What many short texts have in common.

/// Whether a text is one line that can be shown: 1 to `chars_max` characters, not blank, without control characters.
pub fn is_line(text: &str, chars_max: usize) -> bool {
    (1..=chars_max).contains(&text.chars().count())
        && !text.trim().is_empty()
        && !text.chars().any(char::is_control)
}
