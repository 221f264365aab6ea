//! Pages of lists. A cursor is the id of the last row seen: ids are time-ordered, so `id < cursor` is the next page
//! no matter what was inserted meanwhile.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::limits::Limits;

/// What a caller asks for: how many rows, and after which one.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest {
    /// Between 1 and `Limits::page_size_max`.
    pub limit: i64,
    /// `None` is the first page.
    pub cursor: Option<Uuid>,
}

impl PageRequest {
    /// Brings `limit` into range; a missing one becomes the default.
    pub fn new(limit: Option<i64>, cursor: Option<Uuid>, limits: &Limits) -> Self {
        Self { limit: limit.unwrap_or(limits.page_size).clamp(1, limits.page_size_max), cursor }
    }
}

/// One page of a list, newest first unless the list says otherwise.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Pass as `cursor` to get the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Uuid>,
}

impl<T> Page<T> {
    /// Builds a page from up to `limit + 1` rows: the extra row only proves that there is a next page.
    pub fn from_rows(mut rows: Vec<T>, limit: i64, id_of: impl Fn(&T) -> Uuid) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next_cursor = if more { rows.last().map(id_of) } else { None };
        Self { items: rows, next_cursor }
    }

    /// The same page with each row turned into something else.
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(f).collect(), next_cursor: self.next_cursor }
    }
}
