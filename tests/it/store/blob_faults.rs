//! The conformance suite of object stores, where something is wrong: with the credentials, with the way to them, with
//! what comes back.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use plumbline_core::ports::{BlobError, BlobStore};
use plumbline_core::secrets::SecretText;
use plumbline_object_store::{AzureAccess, AzurePlace, AzureStore, GcsAccess, GcsPlace, GcsStore};
use plumbline_s3::{S3Credentials, S3Place, S3Store};

use super::blobs::{in_pieces, varied, write_whole};
use super::object_stores::{self, Remote, Store};

/// Longer than a part of any store.
const LARGE: usize = 12 << 20;

/// Every write of an object that comes at once.
fn writes(method: &Method, _: &Uri, _: &HeaderMap) -> bool {
    method == Method::PUT || method == Method::POST
}

/// The call that gives an object its key, of one that came in parts.
fn last_writes(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let query = uri.query().unwrap_or_default();
    let ends_upload = headers.get("content-range").is_some_and(|range| !range.as_bytes().ends_with(b"/*"));
    (method == Method::POST && query.contains("uploadId=")) || query.contains("comp=blocklist") || ends_upload
}

/// Each call of the port, by its name.
async fn every_call(blobs: &dyn BlobStore) -> Vec<(&'static str, Result<(), BlobError>)> {
    let bytes = || Bytes::from_static(b"x");
    vec![
        ("get", blobs.get("a").await.map(drop)),
        ("get_part", blobs.get_part("a", 0..1).await.map(drop)),
        ("get_part of nothing", blobs.get_part("a", 0..0).await.map(drop)),
        ("head", blobs.head("a").await.map(drop)),
        ("delete", blobs.delete("a").await),
        ("put", blobs.put("b", bytes(), "text/plain").await),
        ("parts", write_whole(blobs, "b", bytes()).await),
        ("large parts", write_whole(blobs, "c", varied(LARGE)).await),
    ]
}

#[tokio::test]
async fn wrong_credentials_are_refused_whatever_is_asked() {
    for Store { name, blobs, remote, .. } in &object_stores::all().await {
        let Some(Remote { refused: Some(refused), .. }) = remote else { continue };
        blobs
            .put("a", Bytes::from_static(b"x"), "text/plain")
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for (call, ended) in every_call(&**refused).await {
            let Err(BlobError::Refused(reason)) = ended else { panic!("{name}: {call}: {ended:?}") };
            assert!(!reason.is_empty() && !reason.contains("hunter2"), "{name}: {call}: {reason}");
        }
        assert_eq!(blobs.get("a").await.unwrap_or_else(|error| panic!("{name}: {error}")), "x", "{name}");
        assert_eq!(blobs.head("b").await.unwrap_or_else(|error| panic!("{name}: {error}")), None, "{name}");
        assert!(!format!("{refused:?}").contains("hunter2"), "{name}");
    }
}

#[tokio::test]
async fn stores_below_two_prefixes_do_not_see_each_other() {
    for Store { name, blobs, remote, .. } in &object_stores::all().await {
        let Some(Remote { elsewhere, .. }) = remote else { continue };
        for (key, length) in [("a/b", 3), ("large", LARGE)] {
            write_whole(&**blobs, key, varied(length))
                .await
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(
                elsewhere.head(key).await.unwrap_or_else(|error| panic!("{name}: {error}")),
                None,
                "{name}"
            );
            assert!(matches!(elsewhere.get(key).await, Err(BlobError::NotFound(_))), "{name}");
            elsewhere.delete(key).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            // Another's object is no conflict.
            let other = Bytes::from(vec![b'x'; length]);
            write_whole(&**elsewhere, key, other.clone())
                .await
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(blobs.get(key).await.unwrap() == varied(length), "{name}");
            assert!(elsewhere.get(key).await.unwrap() == other, "{name}");
            elsewhere.delete(key).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(blobs.get(key).await.unwrap() == varied(length), "{name}");
        }
    }
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_recognised_as_ones_own() {
    for Store { name, blobs, remote, .. } in &object_stores::all().await {
        let Some(Remote { lossy, proxy, .. }) = remote else { continue };
        let put = |key: &'static str, text: &'static str| lossy.put(key, Bytes::from(text), "text/plain");
        // Once lost: sent again by the store itself.
        proxy.lose(writes, 1);
        put("once", "one").await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(proxy.rest(), 0, "{name}: nothing was lost");
        assert_eq!(
            blobs.get("once").await.unwrap_or_else(|error| panic!("{name}: {error}")),
            "one",
            "{name}"
        );
        // Lost however often: it is there, and whoever sends it later hears so.
        proxy.lose(writes, usize::MAX);
        let unheard = put("often", "one").await;
        assert!(matches!(unheard, Err(BlobError::Unavailable(_))), "{name}: {unheard:?}");
        proxy.rest();
        assert_eq!(
            blobs.get("often").await.unwrap_or_else(|error| panic!("{name}: {error}")),
            "one",
            "{name}"
        );
        put("often", "one").await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let other = put("often", "two").await;
        assert!(matches!(other, Err(BlobError::Conflict(_))), "{name}: {other:?}");
        // Other bytes whose first answer is lost were never written.
        proxy.lose(writes, 1);
        let other = put("once", "two").await;
        assert!(matches!(other, Err(BlobError::Conflict(_))), "{name}: {other:?}");
        assert_eq!(proxy.rest(), 0, "{name}: nothing was lost");
        assert_eq!(
            blobs.get("once").await.unwrap_or_else(|error| panic!("{name}: {error}")),
            "one",
            "{name}"
        );
    }
}

#[tokio::test]
async fn parts_whose_last_answer_is_lost_are_recognised_as_ones_own() {
    for Store { name, blobs, remote, .. } in &object_stores::all().await {
        let Some(Remote { lossy, proxy, .. }) = remote else { continue };
        let bytes = varied(LARGE);
        let writer = in_pieces(&**lossy, "pieces", &bytes).await;
        proxy.lose(last_writes, 1);
        writer.finish().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(proxy.rest(), 0, "{name}: nothing was lost");
        assert!(blobs.get("pieces").await.unwrap() == bytes, "{name}");
        // The same again, and others.
        in_pieces(&**lossy, "pieces", &bytes)
            .await
            .finish()
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        proxy.lose(last_writes, 1);
        let other = in_pieces(&**lossy, "pieces", &varied(LARGE + 1)).await.finish().await;
        assert!(matches!(other, Err(BlobError::Conflict(_))), "{name}: {other:?}");
        proxy.rest();
        assert!(blobs.get("pieces").await.unwrap() == bytes, "{name}");
    }
}

#[tokio::test]
async fn a_piece_whose_answer_is_lost_is_sent_again() {
    for Store { name, blobs, remote, .. } in &object_stores::all().await {
        let Some(Remote { lossy, proxy, .. }) = remote else { continue };
        // The upload's beginning, then its pieces: each is lost once.
        proxy.lose(writes, 1);
        let mut writer =
            lossy.begin_parts("pieces", "text/plain").await.unwrap_or_else(|error| panic!("{name}: {error}"));
        for _ in 0..3 {
            writer.write(varied(9 << 20)).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(proxy.rest(), 0, "{name}: nothing was lost");
            proxy.lose(writes, 1);
        }
        proxy.rest();
        writer.finish().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(blobs.get("pieces").await.unwrap() == varied(9 << 20).repeat(3), "{name}");
    }
}

#[tokio::test]
async fn what_passes_by_itself_is_tried_again() {
    for Store { name, remote, .. } in &object_stores::all().await {
        let Some(Remote { lossy, proxy, .. }) = remote else { continue };
        for status in [StatusCode::SERVICE_UNAVAILABLE, StatusCode::INTERNAL_SERVER_ERROR] {
            let key = format!("busy/{}", status.as_u16());
            proxy.answer(status, 1);
            let written = lossy.put(&key, Bytes::from_static(b"x"), "text/plain").await;
            written.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(proxy.rest(), 0, "{name}");
            proxy.answer(status, 1);
            let read = lossy.get(&key).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((read, proxy.rest()), (Bytes::from_static(b"x"), 0), "{name}");
        }
    }
}

#[tokio::test]
async fn what_does_not_pass_in_time_is_called_unavailable_and_what_is_forbidden_refused() {
    for Store { name, remote, .. } in &object_stores::all().await {
        let Some(Remote { lossy, proxy, .. }) = remote else { continue };
        proxy.answer(StatusCode::SERVICE_UNAVAILABLE, usize::MAX);
        for (call, ended) in every_call(&**lossy).await {
            assert!(matches!(ended, Err(BlobError::Unavailable(_))), "{name}: {call}: {ended:?}");
        }
        proxy.answer(StatusCode::FORBIDDEN, usize::MAX);
        for (call, ended) in every_call(&**lossy).await {
            assert!(matches!(ended, Err(BlobError::Refused(_))), "{name}: {call}: {ended:?}");
        }
        proxy.rest();
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_one_is_refused_before_anybody_is_called() {
    let secret = || SecretText::new("hunter2");
    let azure = |account: &str, container: &str, prefix: Option<&str>, endpoint: Option<&str>| {
        let place = AzurePlace {
            account: account.into(),
            container: container.into(),
            prefix: prefix.map(Into::into),
            endpoint: endpoint.map(Into::into),
        };
        AzureStore::open(&place, &AzureAccess::AccountKey(SecretText::new("aHVudGVyMg=="))).map(drop)
    };
    azure("states", "plumbline", Some("a/b/"), None).unwrap();
    let s3 = |bucket: &str, region: &str| {
        let place = S3Place { bucket: bucket.into(), region: region.into(), prefix: None, endpoint: None };
        let keys =
            S3Credentials { access_key_id: "id".into(), secret_access_key: secret(), session_token: None };
        S3Store::open(&place, &keys).map(drop)
    };
    s3("plumbline-states", "eu-central-1").unwrap();
    let gcs = |bucket: &str, endpoint: Option<&str>, key: SecretText| {
        let place = GcsPlace { bucket: bucket.into(), prefix: None, endpoint: endpoint.map(Into::into) };
        GcsStore::open(&place, &GcsAccess::ServiceAccountKey(key)).map(drop)
    };
    let key = object_stores::gcs::key_file(true);
    gcs("plumbline.states_1", None, key.clone()).unwrap();
    let tenant = AzureAccess::ClientSecret {
        tenant_id: "../elsewhere".into(),
        client_id: "id".into(),
        client_secret: secret(),
        directory_endpoint: None,
    };
    let place =
        AzurePlace { account: "states".into(), container: "plumbline".into(), prefix: None, endpoint: None };
    let refusals = [
        azure("evil.example/#", "plumbline", None, None),
        azure("states", "../x", None, None),
        azure("states", "plumbline", Some("../x"), None),
        azure("states", "plumbline", Some("/"), None),
        azure("states", "plumbline", None, Some("file:///etc")),
        AzureStore::open(&place, &AzureAccess::AccountKey(SecretText::new("hunter2 is no base64"))).map(drop),
        AzureStore::open(&place, &tenant).map(drop),
        s3("evil.example/x?", "eu-central-1"),
        s3("plumbline-states", "eu-central-1.evil/"),
        gcs("a/b", None, key.clone()),
        gcs("plumbline", Some("ftp://elsewhere"), key),
        gcs("plumbline", None, secret()),
    ];
    for refusal in refusals {
        let Err(BlobError::Refused(reason)) = &refusal else { panic!("{refusal:?}") };
        assert!(!reason.contains("hunter2"), "{reason}");
    }
}
