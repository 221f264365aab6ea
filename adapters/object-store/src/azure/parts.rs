//! A blob in several blocks: they are put one after the other, and the list of them is put on the condition that nothing
//! has the name.
//!
//! What fits into one block is written as any other object. Azure has no call that removes blocks; those of no list are
//! seen by nobody, and are gone after a week, or as soon as somebody's list is put under the same name.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use object_store::multipart::{MultipartStore as _, PartId};
use plumbline_core::ports::{BlobError, BlobStore as _, PartWriter, Pieces, settle};

use super::AzureStore;
use crate::bucket::Existing as _;
use crate::wire::Call;

/// In memory at a time. A blob has at most 50,000 blocks.
const BLOCK_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub(super) struct Parts {
    store: AzureStore,
    key: String,
    content_type: String,
    pieces: Pieces,
    blocks: Vec<PartId>,
}

impl Parts {
    pub(super) fn begin(store: AzureStore, key: &str, content_type: &str) -> Self {
        Self {
            store,
            key: key.to_owned(),
            content_type: content_type.to_owned(),
            pieces: Pieces::new(BLOCK_BYTES),
            blocks: Vec::new(),
        }
    }

    /// Writes what is whole as a list of one block.
    pub(super) async fn in_one_block(mut self, bytes: Bytes) -> Result<(), BlobError> {
        self.pieces.add(bytes);
        let block = self.pieces.last();
        // There are no empty blocks, but there are empty lists.
        if !block.is_empty() {
            self.send(block).await?;
        }
        self.commit().await
    }

    async fn send(&mut self, block: Bytes) -> Result<(), BlobError> {
        let path = self.store.bucket.path(&self.key)?;
        let objects = &self.store.bucket.objects;
        let sent = objects.put_part(&path, &String::new(), self.blocks.len(), block.into()).await;
        let ended = sent.map(|block| self.blocks.push(block));
        self.store.written(ended.map_err(|error| self.store.bucket.fault(&self.key, &error))).await
    }

    async fn commit(mut self) -> Result<(), BlobError> {
        let mut url = self.store.url(&self.key)?;
        url.set_query(Some("comp=blocklist"));
        let call = Call::new(Method::PUT, url)
            .header("if-none-match", "*")
            .header("x-ms-blob-content-type", &self.content_type)
            .body(block_list(&self.blocks).into());
        let fault = match self.store.send(&call).await {
            Ok(_) => return Ok(()),
            Err(fault) => fault,
        };
        // The name is taken, or our blocks are gone because somebody's list was put: either may be our own earlier try
        // whose answer was lost.
        let blocks_gone = fault.status == Some(400);
        let error = match self.store.written(Err(fault.into_blob(&self.store.bucket.name, &self.key))).await {
            Err(BlobError::Refused(_)) if blocks_gone && self.store.head(&self.key).await?.is_some() => {
                BlobError::Conflict(self.key.clone())
            }
            Err(refused @ (BlobError::Refused(_) | BlobError::StoreMissing { .. })) => return Err(refused),
            Err(error) => error,
            Ok(()) => return Ok(()),
        };
        let sha256 = self.pieces.finish_digest();
        settle(&self.store, &self.key, self.pieces.size_bytes(), sha256, error).await
    }
}

fn block_list(blocks: &[PartId]) -> String {
    let mut list = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for block in blocks {
        list.extend(["<Uncommitted>", &STANDARD.encode(&block.content_id), "</Uncommitted>"]);
    }
    list + "</BlockList>"
}

#[async_trait]
impl PartWriter for Parts {
    async fn write(&mut self, bytes: Bytes) -> Result<(), BlobError> {
        self.pieces.add(bytes);
        while let Some(block) = self.pieces.next_whole() {
            self.send(block).await?;
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<(), BlobError> {
        let last = self.pieces.last();
        if self.blocks.is_empty() {
            return self.store.put(&self.key, last, &self.content_type).await;
        }
        self.send(last).await?;
        self.commit().await
    }

    async fn abort(self: Box<Self>) -> Result<(), BlobError> {
        Ok(())
    }
}
