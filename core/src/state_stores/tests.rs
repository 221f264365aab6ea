use super::rules::session_policy;
use super::{Chosen, Offer, Offers, StateBackend, choose};

const NONE: Offers<&str> =
    Offers { s3: Offer::NoAccount, azureblob: Offer::NoAccount, gcs: Offer::NoAccount };

#[test]
fn the_first_account_with_a_place_takes_the_state_and_without_one_the_platform_does() {
    let automatic = |offers| choose(StateBackend::Automatic, offers);
    assert_eq!(automatic(NONE), Chosen::Platform);
    assert_eq!(automatic(Offers { s3: Offer::NoStore, ..NONE }), Chosen::Platform);
    let all =
        Offers { s3: Offer::Store("s3"), azureblob: Offer::Store("azureblob"), gcs: Offer::Store("gcs") };
    assert_eq!(automatic(all), Chosen::Place("s3"));
    assert_eq!(automatic(Offers { s3: Offer::NoStore, ..all }), Chosen::Place("azureblob"));
    assert_eq!(
        automatic(Offers { s3: Offer::NoAccount, azureblob: Offer::NoStore, ..all }),
        Chosen::Place("gcs")
    );
}

#[test]
fn a_place_that_was_asked_for_is_never_replaced_by_another() {
    let all =
        Offers { s3: Offer::Store("s3"), azureblob: Offer::Store("azureblob"), gcs: Offer::Store("gcs") };
    for (backend, chosen) in [
        (StateBackend::S3, Chosen::Place("s3")),
        (StateBackend::Azureblob, Chosen::Place("azureblob")),
        (StateBackend::Gcs, Chosen::Place("gcs")),
    ] {
        assert_eq!(choose(backend, all), chosen);
        for lacking in [Offer::NoAccount, Offer::NoStore] {
            let mut offers = all;
            match backend {
                StateBackend::S3 => offers.s3 = lacking,
                StateBackend::Azureblob => offers.azureblob = lacking,
                _ => offers.gcs = lacking,
            }
            assert!(matches!(choose(backend, offers), Chosen::Nowhere(_)), "{backend:?} {lacking:?}");
        }
    }
    assert_eq!(choose(StateBackend::Platform, all), Chosen::Platform);
}

#[test]
fn words_are_read_back() {
    for word in ["automatic", "platform", "s3", "azureblob", "gcs"] {
        assert_eq!(StateBackend::parse(word).map(StateBackend::as_str), Some(word));
    }
    assert_eq!(StateBackend::parse("S3"), None);
}

#[test]
fn a_session_reaches_one_bucket_of_its_own_partition() {
    let policy = session_policy("arn:aws-cn:iam::123456789012:role/apply", "acme-states");
    assert!(policy.contains("arn:aws-cn:s3:::acme-states/*"), "{policy}");
    assert!(!policy.contains("\"s3:*\""), "{policy}");
    assert!(policy.len() < 2048, "STS takes no longer one");
}
