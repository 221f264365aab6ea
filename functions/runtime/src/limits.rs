//! Overrides of limits.

use std::time::Duration;

use plumbline_core::limits::Limits;

use crate::environment::{Environment, SettingError};

const PREFIX: &str = "PLUMBLINE_LIMIT_";

/// A kind of limit: how its text is read.
trait Limit: Sized {
    const EXPECTED: &'static str;
    fn read(text: &str) -> Option<Self>;
}

impl Limit for Duration {
    const EXPECTED: &'static str = "must be a time such as 30, 30s, 5m or 4h";
    fn read(text: &str) -> Option<Self> {
        let (number, unit) = split(text);
        let seconds = match unit {
            "" | "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return None,
        };
        Some(Self::from_secs(number.parse::<u64>().ok()?.checked_mul(seconds)?))
    }
}

macro_rules! counts {
    ($($kind:ty)*) => {$(
        impl Limit for $kind {
            const EXPECTED: &'static str = "must be a whole number, not negative; bytes may end with KiB, MiB or GiB";
            fn read(text: &str) -> Option<Self> {
                let (number, unit) = split(text);
                let factor = match unit {
                    "" => 1,
                    "KiB" => 1 << 10,
                    "MiB" => 1 << 20,
                    "GiB" => 1 << 30,
                    _ => return None,
                };
                number.parse::<u64>().ok()?.checked_mul(factor)?.try_into().ok()
            }
        }
    )*};
}

counts! { i32 i64 u32 u64 usize }

impl Limit for f64 {
    const EXPECTED: &'static str = "must be a number above zero";
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number: &Self| number.is_finite() && *number > 0.0)
    }
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()))
}

fn set<T: Limit>(limit: &mut T, name: &str, text: &str) -> Result<(), SettingError> {
    *limit = T::read(text).ok_or_else(|| SettingError::wrong([PREFIX, name].concat(), T::EXPECTED))?;
    Ok(())
}

macro_rules! overrides {
    ($($field:ident)*) => {
        /// The defaults with every `PLUMBLINE_LIMIT_<NAME>` applied. A name that is no limit is refused: a typing
        /// mistake would otherwise leave the default in force.
        pub(crate) fn limits(environment: &Environment) -> Result<Limits, SettingError> {
            let mut limits = Limits::default();
            // Taken apart so that a new limit cannot be forgotten here.
            let Limits { $($field),* } = &mut limits;
            for (name, text) in environment.with_prefix(PREFIX) {
                match name.to_lowercase().as_str() {
                    $(stringify!($field) => set($field, name, text)?,)*
                    _ => return Err(SettingError::wrong(
                        [PREFIX, name].concat(),
                        concat!("no limit has this name; there are", $(" ", stringify!($field)),*),
                    )),
                }
            }
            Ok(limits)
        }
    };
}

overrides! {
    lease heartbeat launch_lease backoff_base backoff_max plan_wall_clock apply_wall_clock short_wall_clock
    sweep_period finished_task_age run_secret_age plan_age launches_per_second
    executors_max unit_executors_max unit_short_tasks_max body_bytes_max inline_state_bytes_max inline_read_bytes_max
    step_log_bytes_max log_chunk_bytes_max idempotency_age access_token_age refresh_token_age issuer_token_age
    issuer_key_lead issuer_key_tail logins_per_minute account_logins_per_minute invite_age
    upload_url_age download_url_age pending_upload_age page_size page_size_max waiting_runs_max bcrypt_cost
    git_timeout git_file_bytes_max git_output_bytes_max
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<Limits, SettingError> {
        limits(&[(name, value)].into_iter().collect())
    }

    #[test]
    fn times_and_sizes_are_read_with_and_without_units() {
        assert_eq!(read("PLUMBLINE_LIMIT_LEASE", "90").expect("fits").lease, Duration::from_secs(90));
        assert_eq!(read("PLUMBLINE_LIMIT_LEASE", "2m").expect("fits").lease, Duration::from_secs(120));
        assert_eq!(read("PLUMBLINE_LIMIT_BODY_BYTES_MAX", "2MiB").expect("fits").body_bytes_max, 2 << 20);
        assert_eq!(read("PLUMBLINE_LIMIT_PAGE_SIZE", "7").expect("fits").page_size, 7);
    }

    #[test]
    fn a_wrong_value_is_named_and_not_echoed() {
        let error = read("PLUMBLINE_LIMIT_LEASE", "hunter2").expect_err("no time").to_string();
        assert!(error.contains("PLUMBLINE_LIMIT_LEASE") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn an_unknown_limit_is_refused() {
        assert!(read("PLUMBLINE_LIMIT_LAESE", "90").is_err());
    }
}
