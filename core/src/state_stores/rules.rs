//! Where a workspace's new bodies go, and what a session that reaches them may do.

use serde_json::json;

use super::StateBackend;

/// What one cloud has to offer a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer<T> {
    /// The workspace is in no account of it, or in one that the unit has not registered.
    NoAccount,
    /// The account names no place for states.
    NoStore,
    /// The account names this one.
    Store(T),
}

/// What the clouds have to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "one for each cloud")]
pub struct Offers<T> {
    pub s3: Offer<T>,
    pub azureblob: Offer<T>,
    pub gcs: Offer<T>,
}

/// Where new bodies go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen<T> {
    /// To the platform's own store.
    Platform,
    /// To what one of the clouds has offered.
    Place(T),
    /// Nowhere: what was asked for is not there. Never the platform's store instead, which somebody may have had a reason
    /// not to want.
    Nowhere(&'static str),
}

/// Chooses.
pub fn choose<T>(backend: StateBackend, offers: Offers<T>) -> Chosen<T> {
    let named = |offer: Offer<T>, no_account: &'static str, no_store: &'static str| match offer {
        Offer::Store(place) => Chosen::Place(place),
        Offer::NoStore => Chosen::Nowhere(no_store),
        Offer::NoAccount => Chosen::Nowhere(no_account),
    };
    match backend {
        StateBackend::Platform => Chosen::Platform,
        StateBackend::S3 => named(
            offers.s3,
            "its state_backend is s3, but it is in no AWS account that is registered",
            "its state_backend is s3, but its AWS account has no state_bucket",
        ),
        StateBackend::Azureblob => named(
            offers.azureblob,
            "its state_backend is azureblob, but it has no Azure subscription",
            "its state_backend is azureblob, but its Azure subscription has no state_container",
        ),
        StateBackend::Gcs => named(
            offers.gcs,
            "its state_backend is gcs, but it has no GCP project",
            "its state_backend is gcs, but its GCP project has no state_bucket",
        ),
        StateBackend::Automatic => {
            let first = [offers.s3, offers.azureblob, offers.gcs].into_iter().find_map(|offer| match offer {
                Offer::Store(place) => Some(place),
                Offer::NoAccount | Offer::NoStore => None,
            });
            first.map_or(Chosen::Platform, Chosen::Place)
        }
    }
}

/// What the session of a role may do while it is ours: nothing but what states in this bucket need, whatever the role may.
pub(super) fn session_policy(role_arn: &str, bucket: &str) -> String {
    // arn:PARTITION:iam::…
    let partition = role_arn.split(':').nth(1).unwrap_or("aws");
    json!({
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
                "Resource": format!("arn:{partition}:s3:::{bucket}/*"),
            },
            {
                "Effect": "Allow",
                "Action": "s3:ListBucket",
                "Resource": format!("arn:{partition}:s3:::{bucket}"),
            },
            {
                "Effect": "Allow",
                "Action": ["kms:GenerateDataKey", "kms:Decrypt"],
                "Resource": "*",
                "Condition": { "StringLike": { "kms:ViaService": "s3.*" } },
            },
        ],
    })
    .to_string()
}
