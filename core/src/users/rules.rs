//! What an e-mail and a password must look like, and whose hands a person is in.

use crate::ids::{BusinessUnitId, UserId};
use crate::text::is_line;

/// The e-mail as it is stored and looked up; `None` if it cannot be one.
pub fn normal_email(text: &str) -> Option<String> {
    let email = text.trim().to_lowercase();
    let shaped = (3..=255).contains(&email.chars().count()) && email.contains('@');
    (shaped && !email.chars().any(char::is_control)).then_some(email)
}

/// Whether a name can be kept.
pub(super) fn check_display_name(name: Option<&str>) -> bool {
    name.is_none_or(|name| is_line(name, 255))
}

/// What is wrong with a new password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordFault {
    /// Too short to be hard to guess, or more than bcrypt reads.
    Length,
    /// The first thing that anybody tries.
    IsEmail,
    /// The second thing that anybody tries.
    Common,
    /// The password was to be changed.
    Unchanged,
}

impl PasswordFault {
    /// What the password must be.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Length => "must have at least 12 characters and at most 72 bytes, without NUL",
            Self::IsEmail => "must not be the e-mail address",
            Self::Common => "is one of those that everybody tries first; choose another one",
            Self::Unchanged => "must differ from the one that it replaces",
        }
    }
}

/// Those of twelve characters or more that lead every list of guesses. A longer list belongs into the place that can
/// keep one up to date; length does the work.
const COMMON: [&str; 24] = [
    "123456789012",
    "1234567890123",
    "12345678901234",
    "123456789101112",
    "1q2w3e4r5t6y",
    "1qaz2wsx3edc",
    "administrator",
    "changemechangeme",
    "correcthorsebatterystaple",
    "iloveyouiloveyou",
    "letmeinletmein",
    "password1234",
    "password12345",
    "password123456",
    "passwordpassword",
    "plumbline1234",
    "plumblineplumbline",
    "qazwsxedcrfv",
    "qwerty123456",
    "qwertyqwerty",
    "qwertyuiop12",
    "qwertyuiop123",
    "qwertyuiopas",
    "welcomewelcome",
];

/// Whether a new password will do. Length is asked for, not a mixture of symbols: that makes passwords hard to remember
/// and not hard to guess. bcrypt reads 72 bytes and stops at NUL: what it would ignore is refused.
pub fn check_password(password: &str, email: &str) -> Result<(), PasswordFault> {
    if password.chars().count() < 12 || password.len() > 72 || password.contains('\0') {
        return Err(PasswordFault::Length);
    }
    let plain = password.trim().to_lowercase();
    if plain == email {
        return Err(PasswordFault::IsEmail);
    }
    let mut letters = plain.chars();
    let first = letters.next();
    if letters.all(|letter| Some(letter) == first) || COMMON.contains(&plain.as_str()) {
        return Err(PasswordFault::Common);
    }
    Ok(())
}

/// Somebody who administers people.
#[derive(Clone, Debug)]
pub(super) struct Administrator {
    pub id: UserId,
    pub is_superadmin: bool,
    /// The units where they are admin, archived ones included.
    pub admin_of: Vec<BusinessUnitId>,
}

impl Administrator {
    /// Whether they say who is in the unit.
    pub(super) fn administers(&self, unit: BusinessUnitId) -> bool {
        self.is_superadmin || self.admin_of.contains(&unit)
    }
}

/// How much of a person is in an administrator's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// Nothing: for the administrator there is no such person.
    Hidden,
    /// They are seen and stay as they are: a superadmin.
    Seen,
    /// Their memberships in the administrator's units: they are in other units, too, and whoever had their account
    /// would have power there.
    Memberships,
    /// Everything but what only superadmins give.
    Whole,
}

/// How far an administrator reaches, given the units that the person is in.
pub(super) fn reach(admin: &Administrator, is_superadmin: bool, units: &[BusinessUnitId]) -> Reach {
    let shared = units.iter().filter(|unit| admin.admin_of.contains(unit)).count();
    if admin.is_superadmin {
        Reach::Whole
    } else if shared == 0 {
        Reach::Hidden
    } else if is_superadmin {
        Reach::Seen
    } else if shared < units.len() {
        Reach::Memberships
    } else {
        Reach::Whole
    }
}

/// A user as far as it matters whether somebody can still administer everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Power {
    pub id: UserId,
    pub is_superadmin: bool,
    /// Enabled, with a way to sign in.
    pub can_sign_in: bool,
}

/// Whether nobody could administer everything any more if this one could not. `all` holds every superadmin, locked.
pub(super) fn is_last_superadmin(id: UserId, all: &[Power]) -> bool {
    let is_able = |user: &Power| user.is_superadmin && user.can_sign_in;
    all.iter().any(|user| user.id == id && is_able(user))
        && !all.iter().any(|user| user.id != id && is_able(user))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn unit(n: u128) -> BusinessUnitId {
        BusinessUnitId(Uuid::from_u128(n))
    }

    fn admin(is_superadmin: bool, admin_of: &[u128]) -> Administrator {
        let id = UserId(Uuid::from_u128(99));
        Administrator { id, is_superadmin, admin_of: admin_of.iter().map(|n| unit(*n)).collect() }
    }

    #[test]
    fn an_admin_reaches_as_far_as_their_units_cover_a_person() {
        let blue = admin(false, &[1]);
        assert_eq!(reach(&blue, false, &[unit(1)]), Reach::Whole);
        assert_eq!(reach(&blue, false, &[unit(1), unit(2)]), Reach::Memberships);
        assert_eq!(reach(&blue, false, &[unit(2)]), Reach::Hidden);
        assert_eq!(reach(&blue, false, &[]), Reach::Hidden);
        assert_eq!(reach(&blue, true, &[unit(1)]), Reach::Seen);
        assert_eq!(reach(&blue, true, &[unit(2)]), Reach::Hidden);
        assert_eq!(reach(&admin(false, &[1, 2]), false, &[unit(1), unit(2)]), Reach::Whole);
        assert_eq!(reach(&admin(false, &[]), false, &[unit(1)]), Reach::Hidden);
        for units in [&[][..], &[unit(1)], &[unit(1), unit(2)]] {
            assert_eq!(reach(&admin(true, &[]), true, units), Reach::Whole);
        }
    }

    #[test]
    fn the_last_superadmin_is_the_last_who_can_sign_in() {
        let user = |n, is_superadmin, can_sign_in| Power {
            id: UserId(Uuid::from_u128(n)),
            is_superadmin,
            can_sign_in,
        };
        let id = |n| UserId(Uuid::from_u128(n));
        let one = [user(1, true, true), user(2, true, false), user(3, false, true)];
        assert!(is_last_superadmin(id(1), &one));
        assert!(!is_last_superadmin(id(2), &one), "who cannot sign in is missed by nobody");
        assert!(!is_last_superadmin(id(3), &one));
        let two = [user(1, true, true), user(2, true, true)];
        assert!(!is_last_superadmin(id(1), &two) && !is_last_superadmin(id(2), &two));
    }

    #[test]
    fn passwords_are_judged_by_length_and_by_what_everybody_tries() {
        let email = "ada.lovelace@plumbline.test";
        let judge = |password: &str| check_password(password, email);
        assert_eq!(judge("correct horse battery"), Ok(()));
        assert_eq!(judge("zwölf zeichen"), Ok(()));
        assert_eq!(judge("eleven char"), Err(PasswordFault::Length));
        assert_eq!(judge(&"ä".repeat(37)), Err(PasswordFault::Length), "74 bytes");
        assert_eq!(judge("nul in the \0 middle"), Err(PasswordFault::Length));
        assert_eq!(judge("Ada.Lovelace@Plumbline.test"), Err(PasswordFault::IsEmail));
        for common in ["PasswordPassword", "123456789012", " qwertyuiop123", "aaaaaaaaaaaaa", "             "]
        {
            assert_eq!(judge(common), Err(PasswordFault::Common), "{common}");
        }
        assert!(COMMON.is_sorted() && COMMON.iter().all(|word| word.len() >= 12));
    }

    #[test]
    fn names_are_short_lines() {
        assert!(check_display_name(None) && check_display_name(Some("Ada")));
        for bad in ["", "  ", "a\nb", &"x".repeat(256)] {
            assert!(!check_display_name(Some(bad)), "{bad}");
        }
    }
}
