//! An answer of the API: the bytes as they came, and typed views of them.

use anyhow::Context as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// One JSON document as the server wrote it; empty for an answer without a body.
#[derive(Clone, Debug)]
pub struct Document {
    text: String,
    etag: Option<String>,
}

impl Document {
    pub(super) fn new(text: String, etag: Option<String>) -> Self {
        Self { text, etag }
    }

    /// Names the version that this is, for an edit of it.
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// What `--json` prints.
    pub fn text(&self) -> &str {
        self.text.trim_end()
    }

    /// Reads what people are shown from it. Fields that the view does not know are ignored.
    pub fn read<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_str(&self.text).context(
            "the server's answer is not what this version of plumb understands; \
             compare `plumb --version` with the server's version",
        )
    }
}

/// One page of a list.
#[derive(Clone, Debug, Deserialize)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where the next page begins; `None` on the last page.
    #[serde(default)]
    pub next_cursor: Option<String>,
}
