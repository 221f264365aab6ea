//! `plumbtest_program`: runs a program whenever it is read, in a plan too, and tells what it said.

use std::process::Stdio;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tf_provider::schema::{AttributeType, Schema};
use tf_provider::value::{ValueEmpty, ValueList, ValueString};
use tf_provider::{DataSource, Diagnostics, map};

use crate::managed::{given, schema, told};

pub(crate) struct Program;

#[derive(Serialize, Deserialize)]
pub(crate) struct State {
    command: ValueList<ValueString<'static>>,
    output: ValueString<'static>,
}

#[async_trait]
impl DataSource for Program {
    type State<'a> = State;
    type ProviderMetaState<'a> = ValueEmpty;

    fn schema(&self, _: &mut Diagnostics) -> Option<Schema> {
        Some(schema(map! {
            "command" => given(AttributeType::List(AttributeType::String.into())),
            "output" => told(AttributeType::String),
        }))
    }

    async fn read<'a>(&self, diags: &mut Diagnostics, mut config: State, _: ValueEmpty) -> Option<State> {
        let words: Vec<&str> = config.command.iter().flatten().map(|word| word.as_str()).collect();
        let Some((program, arguments)) = words.split_first() else {
            diags.root_error_short("The command is empty");
            return None;
        };
        let ran = tokio::process::Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .await;
        match ran {
            Ok(ended) if ended.status.success() => {
                config.output = String::from_utf8_lossy(&ended.stdout).into_owned().into();
                Some(config)
            }
            Ok(ended) => {
                diags.root_error("The program failed", ended.status.to_string());
                None
            }
            Err(error) => {
                diags.root_error("The program could not be run", error.to_string());
                None
            }
        }
    }
}
