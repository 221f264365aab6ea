//! `plumbtest_parts`: makes its parts one after the other, and fails after some of them, keeping what was made.

use std::collections::HashMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tf_provider::schema::{Attribute, AttributeType};
use tf_provider::value::{Value, ValueNumber, ValueString};
use tf_provider::{AttributePath, Diagnostics, map};

use crate::managed::{Kind, given, told, wished};

pub(crate) struct Parts;

#[derive(Serialize, Deserialize)]
pub(crate) struct State {
    id: ValueString<'static>,
    wanted: ValueNumber,
    fails_after: ValueNumber,
    made: ValueNumber,
}

#[async_trait]
impl Kind for Parts {
    type State = State;

    fn attributes(&self) -> HashMap<String, Attribute> {
        map! {
            "id" => told(AttributeType::String),
            "wanted" => given(AttributeType::Number),
            "fails_after" => wished(AttributeType::Number),
            "made" => told(AttributeType::Number),
        }
    }

    fn forget(&self, state: &mut State) {
        state.id = Value::Unknown;
        state.made = Value::Unknown;
    }

    fn replacing(&self, prior: &State, proposed: &State) -> Vec<AttributePath> {
        if prior.wanted == proposed.wanted { Vec::new() } else { vec![AttributePath::new("wanted")] }
    }

    async fn create(&self, diags: &mut Diagnostics, mut planned: State) -> Option<State> {
        let wanted = planned.wanted.as_ref_option().copied().unwrap_or_default();
        let fails_after = planned.fails_after.as_ref_option().copied().unwrap_or(i64::MAX);
        let made = wanted.min(fails_after);
        planned.id = format!("parts-{made}-of-{wanted}").into();
        planned.made = Value::Value(made);
        if made < wanted {
            diags.root_error(
                "Not all parts could be made",
                format!("{made} of {wanted} parts were made; the rest failed"),
            );
        }
        Some(planned)
    }
}
