//! `plumbtest_noise`: megabytes of text in one attribute, always the same for one seed.
//!
//! A data source and no resource: the plugin library takes requests of 4 MB at most, and a resource's attributes come
//! back to it with every call.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tf_provider::schema::{AttributeType, Schema};
use tf_provider::value::{ValueEmpty, ValueNumber, ValueString};
use tf_provider::{DataSource, Diagnostics, map};

use crate::managed::{given, schema, told};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

pub(crate) struct Noise;

#[derive(Serialize, Deserialize)]
pub(crate) struct State {
    seed: ValueNumber,
    megabytes: ValueNumber,
    text: ValueString<'static>,
}

/// Hexadecimal digits from a xorshift generator: text that does not compress away.
fn noise(seed: u64, length: usize) -> String {
    let mut word = seed | 1;
    let mut text = String::with_capacity(length);
    while text.len() < length {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        text.push(char::from(DIGITS[(word >> 60) as usize]));
    }
    text
}

#[async_trait]
impl DataSource for Noise {
    type State<'a> = State;
    type ProviderMetaState<'a> = ValueEmpty;

    fn schema(&self, _: &mut Diagnostics) -> Option<Schema> {
        Some(schema(map! {
            "seed" => given(AttributeType::Number),
            "megabytes" => given(AttributeType::Number),
            "text" => told(AttributeType::String),
        }))
    }

    async fn read<'a>(&self, _: &mut Diagnostics, mut config: State, _: ValueEmpty) -> Option<State> {
        let number = |value: &ValueNumber| value.as_ref_option().copied().unwrap_or_default().unsigned_abs();
        let length = usize::try_from(number(&config.megabytes)).ok()? << 20;
        config.text = noise(number(&config.seed), length).into();
        Some(config)
    }
}
