//! Names of branches and tags, by the rules of `git check-ref-format`.

/// Longest name, in bytes: longer ones do not fit into a file name under `refs/heads`.
const REF_BYTES_MAX: usize = 244;

/// Refuses names that Git would refuse, and those that Git could take for an option. Slashes are allowed.
pub fn check_branch(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > REF_BYTES_MAX {
        return Err("must have 1 to 244 bytes");
    }
    if name.starts_with('-') {
        return Err("must not begin with a dash");
    }
    if name.chars().any(|c| c.is_control() || " ~^:?*[\\".contains(c)) {
        return Err("must not contain control characters, blanks or any of ~ ^ : ? * [ \\");
    }
    if name.contains("..") || name.contains("@{") || name == "@" || name.ends_with('.') {
        return Err("must not contain .. or @{, be @, or end with a dot");
    }
    let bad_part = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    if name.split('/').any(bad_part) {
        return Err("no part between slashes may be empty, begin with a dot or end with .lock");
    }
    Ok(())
}
