//! `plumbtest_file`: what it is, a file on disk says, so that others can change it behind terraform's back.

use std::collections::HashMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tf_provider::schema::{Attribute, AttributeType};
use tf_provider::value::{Value, ValueString};
use tf_provider::{AttributePath, Diagnostics, map};

use crate::managed::{Kind, given, told};

pub(crate) struct File;

#[derive(Serialize, Deserialize)]
pub(crate) struct State {
    id: ValueString<'static>,
    path: ValueString<'static>,
    content: ValueString<'static>,
}

async fn write(diags: &mut Diagnostics, mut state: State) -> Option<State> {
    if let Err(error) = tokio::fs::write(state.path.as_str(), state.content.as_str()).await {
        diags.root_error("The file could not be written", error.to_string());
        return None;
    }
    state.id = state.path.clone();
    Some(state)
}

#[async_trait]
impl Kind for File {
    type State = State;

    fn attributes(&self) -> HashMap<String, Attribute> {
        map! {
            "id" => told(AttributeType::String),
            "path" => given(AttributeType::String),
            "content" => given(AttributeType::String),
        }
    }

    fn forget(&self, state: &mut State) {
        state.id = Value::Unknown;
    }

    fn replacing(&self, prior: &State, proposed: &State) -> Vec<AttributePath> {
        if prior.path == proposed.path { Vec::new() } else { vec![AttributePath::new("path")] }
    }

    async fn read(&self, mut state: State) -> Option<State> {
        let content = tokio::fs::read_to_string(state.path.as_str()).await.ok()?;
        state.content = content.into();
        Some(state)
    }

    async fn create(&self, diags: &mut Diagnostics, planned: State) -> Option<State> {
        write(diags, planned).await
    }

    async fn update(&self, diags: &mut Diagnostics, planned: State) -> Option<State> {
        write(diags, planned).await
    }

    async fn destroy(&self, diags: &mut Diagnostics, state: State) -> Option<()> {
        match tokio::fs::remove_file(state.path.as_str()).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                diags.root_error("The file could not be removed", error.to_string());
                None
            }
            _ => Some(()),
        }
    }
}
