//! An object store in trouble.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use plumbline_core::adapters::DirectoryStore;
use plumbline_core::ports::{BlobError, BlobHead, BlobStore, PartWriter, UploadTerms};
use plumbline_core::protocol::Presigned;

use super::chronicle::Chronicle;
use super::script::Trouble;

const SLOW: Duration = Duration::from_millis(150);
const TIMEOUT: Duration = Duration::from_millis(400);

/// As one process sees it.
#[derive(Debug)]
pub struct TroubledStore {
    inner: DirectoryStore,
    chronicle: Arc<Chronicle>,
    coming: Mutex<VecDeque<Trouble>>,
    /// A planted defect: of so many bodies one is gone right after it was put.
    loses_every: Mutex<Option<u32>>,
}

impl TroubledStore {
    pub fn new(inner: DirectoryStore, chronicle: Arc<Chronicle>) -> Self {
        Self { inner, chronicle, coming: Mutex::default(), loses_every: Mutex::default() }
    }

    pub fn expect(&self, trouble: Trouble, calls: u8) {
        self.coming.lock().unwrap().extend(std::iter::repeat_n(trouble, calls.into()));
    }

    pub fn calm_down(&self) {
        self.coming.lock().unwrap().clear();
    }

    pub fn lose_every(&self, count: u32) {
        *self.loses_every.lock().unwrap() = Some(count);
    }

    async fn through<T>(&self, call: impl Future<Output = Result<T, BlobError>>) -> Result<T, BlobError> {
        let trouble = self.coming.lock().unwrap().pop_front();
        let Some(trouble) = trouble else { return call.await };
        let from = self.chronicle.tick();
        let failed = |why: &str| Err(BlobError::Unavailable(why.into()));
        let (what, answer) = match trouble {
            Trouble::Error => ("store errors", failed("it answered with an error")),
            Trouble::Timeout => {
                tokio::time::sleep(TIMEOUT).await;
                ("store timeouts", failed("it did not answer"))
            }
            Trouble::Slow => {
                tokio::time::sleep(SLOW).await;
                ("slow store answers", call.await)
            }
            Trouble::AnswerLost => match call.await {
                Ok(_) => ("lost store answers", failed("its answer was lost")),
                Err(error) => ("lost store answers", Err(error)),
            },
        };
        self.chronicle.fault(what, from);
        answer
    }
}

#[async_trait]
impl BlobStore for TroubledStore {
    async fn put(&self, key: &str, bytes: Bytes, content_type: &str) -> Result<(), BlobError> {
        self.through(self.inner.put(key, bytes, content_type)).await?;
        let is_lost = self.loses_every.lock().unwrap().as_mut().is_some_and(|left| {
            *left = left.checked_sub(1).unwrap_or(4);
            *left == 0
        });
        if is_lost {
            self.inner.delete(key).await?;
        }
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Bytes, BlobError> {
        self.through(self.inner.get(key)).await
    }

    async fn get_part(&self, key: &str, part: Range<u64>) -> Result<Bytes, BlobError> {
        self.through(self.inner.get_part(key, part)).await
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, BlobError> {
        self.through(self.inner.head(key)).await
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        self.through(self.inner.delete(key)).await
    }

    async fn begin_parts(&self, key: &str, content_type: &str) -> Result<Box<dyn PartWriter>, BlobError> {
        self.through(self.inner.begin_parts(key, content_type)).await
    }

    async fn presign_put(
        &self,
        key: &str,
        terms: &UploadTerms,
        age: Duration,
    ) -> Result<Presigned, BlobError> {
        self.inner.presign_put(key, terms, age).await
    }

    async fn presign_get(&self, key: &str, age: Duration) -> Result<Presigned, BlobError> {
        self.inner.presign_get(key, age).await
    }
}
