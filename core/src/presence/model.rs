//! Presence as plain data.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::ids::UserId;

/// How long somebody counts as being there after they said so. Clients say so twice as often.
pub(super) const SEEN_FOR: Duration = Duration::from_secs(60);
/// How long a row is kept.
pub(super) const KEPT_FOR: Duration = Duration::from_secs(600);

/// Somebody who is there.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct PresenceView {
    /// Who.
    pub user_id: UserId,
    /// Their e-mail.
    pub email: String,
    /// Their name, if they have one.
    pub display_name: Option<String>,
    /// The slug of the unit that they look at; absent for a superadmin who looks at all.
    pub bu_slug: Option<String>,
    /// When they last said so.
    pub last_seen_at: DateTime<Utc>,
}
