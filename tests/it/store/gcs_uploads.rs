//! Google's resumable uploads, and what an emulator of it can and cannot show.

use bytes::Bytes;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::{BlobError, holds};

use super::blobs::{in_pieces, varied, write_whole};
use super::object_stores::gcs;

#[tokio::test]
async fn a_service_that_keeps_the_beginning_of_a_piece_is_sent_the_rest() {
    let (store, service) = gcs::fake().await;
    service.keep_at_most(3 << 20);
    let bytes = varied(21 << 20);
    in_pieces(&*store.blobs, "pieces", &bytes).await.finish().await.unwrap();
    assert!(store.blobs.get("pieces").await.unwrap() == bytes);
}

#[tokio::test]
async fn a_service_that_keeps_nothing_is_not_sent_to_for_ever() {
    let (store, service) = gcs::fake().await;
    service.keep_at_most(0);
    let written = write_whole(&*store.blobs, "pieces", varied(12 << 20)).await;
    assert!(matches!(written, Err(BlobError::Unavailable(_))), "{written:?}");
}

#[tokio::test]
async fn an_upload_that_is_given_up_or_lost_its_race_is_ended() {
    let (store, service) = gcs::fake().await;
    let (one, two) = (varied(12 << 20), varied(13 << 20));
    in_pieces(&*store.blobs, "pieces", &one).await.abort().await.unwrap();
    assert_eq!(service.open_uploads(), 0);
    let late = in_pieces(&*store.blobs, "pieces", &one).await;
    in_pieces(&*store.blobs, "pieces", &two).await.finish().await.unwrap();
    assert_eq!(service.open_uploads(), 1);
    assert!(matches!(late.finish().await, Err(BlobError::Conflict(_))));
    assert_eq!(service.open_uploads(), 0);
    assert!(store.blobs.get("pieces").await.unwrap() == two);
}

#[tokio::test]
async fn an_emulator_keeps_and_gives_what_is_written() {
    let Some(store) = gcs::emulator().await else { return };
    let blobs = &*store.blobs;
    assert_eq!(blobs.head("a/b").await.unwrap(), None);
    assert!(matches!(blobs.get("a/b").await, Err(BlobError::NotFound(_))));
    for (key, length) in [("a/b", 6), ("empty", 0), ("large", 21 << 20)] {
        let bytes = varied(length);
        in_pieces(blobs, key, &bytes).await.finish().await.unwrap();
        assert!(blobs.get(key).await.unwrap() == bytes, "{key}");
        assert_eq!(blobs.head(key).await.unwrap().unwrap().size_bytes, length as u64, "{key}");
        assert!(holds(blobs, key, length as u64, Sha256Digest::of(&bytes)).await.unwrap(), "{key}");
    }
    for (part, expected) in [(2..4, 2..4), (4..99, 4..6), (6..9, 0..0), (3..3, 0..0)] {
        assert_eq!(blobs.get_part("a/b", part.clone()).await.unwrap(), varied(6).slice(expected), "{part:?}");
    }
    let elsewhere = &store.remote.as_ref().unwrap().elsewhere;
    assert_eq!(elsewhere.head("a/b").await.unwrap(), None);
    elsewhere.delete("a/b").await.unwrap();
    blobs.delete("a/b").await.unwrap();
    blobs.delete("a/b").await.unwrap();
    assert_eq!(blobs.head("a/b").await.unwrap(), None);
    let missing = &*store.missing;
    for ended in [
        missing.get("a").await.map(drop),
        missing.head("a").await.map(drop),
        missing.delete("a").await,
        missing.put("a", Bytes::new(), "text/plain").await,
        write_whole(missing, "a", varied(12 << 20)).await,
    ] {
        assert!(matches!(ended, Err(BlobError::StoreMissing { .. })), "{ended:?}");
    }
}

/// Why the suite runs on a stand-in of our own. If this fails, the emulator has learned it: let the suite run on it.
#[tokio::test]
async fn the_emulator_does_not_enforce_that_nothing_has_the_name() {
    let Some(store) = gcs::emulator().await else { return };
    for (key, length) in [("at-once", 3), ("in-pieces", 12 << 20)] {
        write_whole(&*store.blobs, key, varied(length)).await.unwrap();
        let other = Bytes::from(vec![b'x'; length]);
        let replaced = write_whole(&*store.blobs, key, other.clone()).await;
        assert!(replaced.is_ok(), "{key}: it enforces ifGenerationMatch now: {replaced:?}");
        assert!(store.blobs.get(key).await.unwrap() == other, "{key}");
    }
}
