//! What all kinds of accounts share.

use serde::{Deserialize, Serialize};

use crate::protocol::RunPhase;

/// Shortest secret of which a tail is shown, in characters: of a shorter one it would be too much.
const TAIL_FROM_CHARS: usize = 12;
const TAIL_CHARS: usize = 4;

/// What people see of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MaskedSecret {
    /// Whether there is one.
    pub configured: bool,
    /// Its last four characters; absent where that would be too much of it.
    pub masked_tail: Option<String>,
    /// It is there and cannot be opened: replace it.
    pub unreadable: bool,
}

impl MaskedSecret {
    /// There is none.
    pub fn absent() -> Self {
        Self { configured: false, masked_tail: None, unreadable: false }
    }

    /// There is one that cannot be opened.
    pub fn unreadable() -> Self {
        Self { configured: true, masked_tail: None, unreadable: true }
    }

    /// There is one without a tail that says anything.
    pub fn hidden() -> Self {
        Self { configured: true, masked_tail: None, unreadable: false }
    }

    /// This one.
    pub fn of(secret: &str) -> Self {
        let chars: Vec<char> = secret.chars().collect();
        let tail =
            (chars.len() >= TAIL_FROM_CHARS).then(|| chars[chars.len() - TAIL_CHARS..].iter().collect());
        Self { configured: true, masked_tail: tail, unreadable: false }
    }
}

/// Who uses an account: by name, the first few of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedBy {
    /// Workspaces whose runs get its credentials.
    pub workspaces: Vec<String>,
    /// Clusters whose plugins use its credentials.
    pub clusters: Vec<String>,
    /// Workspaces with versions of their state in its bucket or container; they may lie where it said earlier.
    pub states: Vec<String>,
}

impl UsedBy {
    /// Whether nobody does.
    pub fn is_nobody(&self) -> bool {
        self.workspaces.is_empty() && self.clusters.is_empty() && self.states.is_empty()
    }
}

/// A cloud whose credentials a run may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cloud {
    /// An AWS account.
    Aws,
    /// An Azure subscription.
    Azure,
    /// A GCP project.
    Gcp,
    /// A Kubernetes cluster.
    Kubernetes,
}

/// Which credentials a phase of a run got, or why it got none. Never the credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UsedCredential {
    /// Plan or apply.
    pub phase: RunPhase,
    /// Of which cloud.
    pub cloud: Cloud,
    /// Number, id or name of the account there.
    pub account: String,
    /// The role that the phase acts in, where it assumes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    /// Set if the phase got no credentials: why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::MaskedSecret;

    #[test]
    fn a_mask_shows_four_characters_of_a_long_secret_and_none_of_a_short_one() {
        assert_eq!(MaskedSecret::of("0123456789ab").masked_tail.as_deref(), Some("89ab"));
        assert_eq!(MaskedSecret::of("0123456789a").masked_tail, None);
        assert_eq!(MaskedSecret::of("ööööööööööéé").masked_tail.as_deref(), Some("ööéé"));
        assert!(MaskedSecret::of("").configured && !MaskedSecret::absent().configured);
    }
}
