//! `plumbtest_secret`: a sensitive value that the provider makes itself, so nobody else can know it beforehand.

use std::collections::HashMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tf_provider::schema::{Attribute, AttributeType};
use tf_provider::value::{Value, ValueString};
use tf_provider::{AttributePath, Diagnostics, map};

use crate::managed::{Kind, given, told};

pub(crate) struct Secret;

#[derive(Serialize, Deserialize)]
pub(crate) struct State {
    id: ValueString<'static>,
    seed: ValueString<'static>,
    value: ValueString<'static>,
}

#[async_trait]
impl Kind for Secret {
    type State = State;

    fn attributes(&self) -> HashMap<String, Attribute> {
        map! {
            "id" => told(AttributeType::String),
            "seed" => given(AttributeType::String),
            "value" => Attribute { sensitive: true, ..told(AttributeType::String) },
        }
    }

    fn forget(&self, state: &mut State) {
        state.id = Value::Unknown;
        state.value = Value::Unknown;
    }

    fn replacing(&self, prior: &State, proposed: &State) -> Vec<AttributePath> {
        if prior.seed == proposed.seed { Vec::new() } else { vec![AttributePath::new("seed")] }
    }

    async fn create(&self, _: &mut Diagnostics, mut planned: State) -> Option<State> {
        let backwards: String = planned.seed.as_str().chars().rev().collect();
        planned.id = format!("secret-{}", planned.seed.as_str()).into();
        planned.value = format!("whispered-{backwards}").into();
        Some(planned)
    }
}
