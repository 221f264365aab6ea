//! Times and sizes as people say them.

use chrono::{DateTime, Utc};

/// How long ago, or in how long, in one unit; `-` for never.
pub fn ago(at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> String {
    let Some(at) = at else { return "-".into() };
    let elapsed = (now - at).num_seconds();
    if elapsed.abs() < 5 {
        "now".into()
    } else if elapsed > 0 {
        format!("{} ago", seconds(elapsed))
    } else {
        format!("in {}", seconds(-elapsed))
    }
}

/// A length of time, in its largest whole unit.
pub fn seconds(count: i64) -> String {
    match count {
        ..120 => format!("{count} s"),
        120..7_200 => format!("{} min", count / 60),
        7_200..172_800 => format!("{} h", count / 3_600),
        172_800.. => format!("{} d", count / 86_400),
    }
}

/// A size in bytes, in its largest unit.
pub fn bytes(count: i64) -> String {
    const KIB: i64 = 1024;
    const MIB: i64 = 1024 * KIB;
    const GIB: i64 = 1024 * MIB;
    // Sizes are shown to one digit: what a double loses does not appear.
    #[expect(clippy::cast_precision_loss, reason = "shown to one digit")]
    let scaled = |unit: i64| count as f64 / unit as f64;
    match count {
        ..KIB => format!("{count} B"),
        KIB..MIB => format!("{:.1} KiB", scaled(KIB)),
        MIB..GIB => format!("{:.1} MiB", scaled(MIB)),
        GIB.. => format!("{:.1} GiB", scaled(GIB)),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn times_are_relative_in_one_unit() {
        let now = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(400);
        let before = |seconds| ago(Some(now - TimeDelta::seconds(seconds)), now);
        assert_eq!(before(2), "now");
        assert_eq!(before(90), "90 s ago");
        assert_eq!(before(3_700), "61 min ago");
        assert_eq!(before(90_000), "25 h ago");
        assert_eq!(before(864_000), "10 d ago");
        assert_eq!(before(-600), "in 10 min");
        assert_eq!(ago(None, now), "-");
    }

    #[test]
    fn sizes_keep_one_digit() {
        assert_eq!(bytes(1_023), "1023 B");
        assert_eq!(bytes(1_536), "1.5 KiB");
        assert_eq!(bytes(30 * 1024 * 1024), "30.0 MiB");
    }
}
