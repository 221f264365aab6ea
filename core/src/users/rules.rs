//! What an e-mail and a password must look like.

/// The e-mail as it is stored and looked up; `None` if it cannot be one.
pub fn normal_email(text: &str) -> Option<String> {
    let email = text.trim().to_lowercase();
    let shaped = (3..=255).contains(&email.chars().count()) && email.contains('@');
    (shaped && !email.chars().any(char::is_control)).then_some(email)
}

/// Whether a new password will do. bcrypt reads 72 bytes and stops at NUL: what it would ignore is refused.
pub fn check_password(password: &str) -> bool {
    password.chars().count() >= 12 && password.len() <= 72 && !password.contains('\0')
}
