//! Text from elsewhere, made harmless for a terminal.
//!
//! Logs and names come from code and people that we do not trust; an escape sequence in them could move the cursor,
//! set the clipboard or hide a line of a plan.

/// The text without control characters, but for newlines, tabs and colours (`ESC [ … m`).
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(character) = chars.next() {
        match character {
            '\u{1b}' => {
                let color = color_sequence(chars.clone());
                if let Some(sequence) = color {
                    chars.nth(sequence.len() - 1);
                    out.push('\u{1b}');
                    out.push_str(&sequence);
                }
            }
            '\n' | '\t' => out.push(character),
            other if other.is_control() || is_direction_override(other) => {}
            other => out.push(other),
        }
    }
    out
}

/// The rest of a colour sequence after its escape character.
fn color_sequence(chars: impl Iterator<Item = char>) -> Option<String> {
    let mut sequence = String::new();
    for (index, character) in chars.enumerate() {
        sequence.push(character);
        match (index, character) {
            (0, '[') => {}
            (1.., '0'..='9' | ';') => {}
            (1.., 'm') => return Some(sequence),
            _ => return None,
        }
    }
    None
}

/// Characters that make a line read otherwise than it is.
fn is_direction_override(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn colours_stay_and_everything_that_moves_the_cursor_goes() {
        assert_eq!(clean("a\u{1b}[1;32mgreen\u{1b}[0m\tb\n"), "a\u{1b}[1;32mgreen\u{1b}[0m\tb\n");
        assert_eq!(clean("over\rwrite\u{1b}[2J\u{8}"), "overwrite[2J");
        assert_eq!(clean("\u{1b}]52;c;aGk=\u{7}x"), "]52;c;aGk=x");
        assert_eq!(clean("a\u{202e}b\u{1b}"), "ab");
    }
}
