//! Resources as plain data, and what can be asked about them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::{ResourceId, StateVersionId, WorkspaceId};

/// A resource in the newest indexed state of its workspace.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ResourceView {
    /// Its id in the index: the same as long as the state has the address.
    pub id: ResourceId,
    /// Where it is kept.
    pub workspace_id: WorkspaceId,
    /// The workspace's name.
    pub workspace_name: String,
    /// As Terraform calls it.
    pub address: String,
    /// `managed` or `data`.
    pub mode: String,
    /// Such as `aws_instance`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The resource's own name in its module.
    pub name: String,
    /// The module's address; absent in the root.
    pub module: Option<String>,
    /// The provider's source, such as `registry.terraform.io/hashicorp/aws`.
    pub provider: String,
    /// The key under `count` or `for_each`.
    pub index_key: Option<String>,
    /// How the provider calls it: the attribute `id`.
    pub resource_id: Option<String>,
    /// The attribute `arn`.
    pub arn: Option<String>,
    /// Other attributes that name it: `name`, `bucket`, `tags.Name`.
    pub names: BTreeMap<String, String>,
    /// The version of the state that was indexed.
    pub state_version_id: StateVersionId,
    /// When it was.
    pub indexed_at: DateTime<Utc>,
}

/// What to look for.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Words in lower case that must all be there, with nothing that LIKE takes for itself.
    pub(super) patterns: Vec<String>,
    pub(super) kind: Option<String>,
    pub(super) provider: Option<String>,
    pub(super) workspace_id: Option<WorkspaceId>,
}

/// What is wrong with a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSearch {
    /// Too long, or no text that the database holds.
    #[error("{0} must have at most 200 characters, and no NUL")]
    Text(&'static str),
    /// Too many words.
    #[error("q must have at most 8 words")]
    Words,
}

const TEXT_LENGTH_MAX: usize = 200;
const WORDS_MAX: usize = 8;

impl Search {
    /// Reads a search as people write it: words in any order, parts of words too.
    pub fn new(
        q: Option<&str>,
        kind: Option<String>,
        provider: Option<String>,
        workspace_id: Option<WorkspaceId>,
    ) -> Result<Self, BadSearch> {
        for (field, text) in [("q", q), ("type", kind.as_deref()), ("provider", provider.as_deref())] {
            if text.is_some_and(|text| text.chars().count() > TEXT_LENGTH_MAX || text.contains('\0')) {
                return Err(BadSearch::Text(field));
            }
        }
        let patterns: Vec<String> =
            q.unwrap_or_default().split_whitespace().map(|word| pattern(&word.to_lowercase())).collect();
        if patterns.len() > WORDS_MAX {
            return Err(BadSearch::Words);
        }
        Ok(Self { patterns, kind, provider, workspace_id })
    }
}

fn pattern(word: &str) -> String {
    let mut pattern = String::from("%");
    for char in word.chars() {
        if matches!(char, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_takes_every_character_as_it_is() {
        let search = Search::new(Some(" A_b  50%\\x "), None, None, None).unwrap();
        assert_eq!(search.patterns, [r"%a\_b%", r"%50\%\\x%"]);
        assert!(Search::new(None, None, None, None).unwrap().patterns.is_empty());
    }

    #[test]
    fn a_search_is_bounded() {
        assert_eq!(Search::new(Some("a\0"), None, None, None).unwrap_err(), BadSearch::Text("q"));
        let long = "x".repeat(201);
        assert_eq!(Search::new(None, Some(long), None, None).unwrap_err(), BadSearch::Text("type"));
        assert_eq!(Search::new(Some("a b c d e f g h i"), None, None, None).unwrap_err(), BadSearch::Words);
    }
}
