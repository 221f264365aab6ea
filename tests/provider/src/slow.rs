//! `plumbtest_slow`: its creation takes the given time, or lasts until a file exists.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tf_provider::schema::{Attribute, AttributeType};
use tf_provider::value::{Value, ValueNumber, ValueString};
use tf_provider::{Diagnostics, map};

use crate::managed::{Kind, given, told, wished};

const POLL: Duration = Duration::from_millis(20);

pub(crate) struct Slow;

#[derive(Serialize, Deserialize)]
pub(crate) struct State {
    id: ValueString<'static>,
    name: ValueString<'static>,
    milliseconds: ValueNumber,
    /// Written when the creation begins.
    begun_file: ValueString<'static>,
    until_file: ValueString<'static>,
}

#[async_trait]
impl Kind for Slow {
    type State = State;

    fn attributes(&self) -> HashMap<String, Attribute> {
        map! {
            "id" => told(AttributeType::String),
            "name" => given(AttributeType::String),
            "milliseconds" => wished(AttributeType::Number),
            "begun_file" => wished(AttributeType::String),
            "until_file" => wished(AttributeType::String),
        }
    }

    fn forget(&self, state: &mut State) {
        state.id = Value::Unknown;
    }

    async fn create(&self, diags: &mut Diagnostics, mut planned: State) -> Option<State> {
        if let Some(path) = planned.begun_file.as_deref_option()
            && let Err(error) = tokio::fs::write(path, "").await
        {
            diags.root_error("The beginning could not be noted", format!("{path}: {error}"));
            return None;
        }
        let milliseconds = planned.milliseconds.as_ref_option().copied().unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(milliseconds.unsigned_abs())).await;
        while planned.until_file.as_deref_option().is_some_and(|path| !Path::new(path).exists()) {
            tokio::time::sleep(POLL).await;
        }
        planned.id = format!("slow-{}", planned.name.as_str()).into();
        Some(planned)
    }
}
