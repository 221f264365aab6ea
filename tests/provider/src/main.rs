//! A Terraform provider for tests only: resources that are slow, fail half-way, drift or keep a secret, a data source
//! that is huge and one that runs any program. Built by `scripts/provider.sh`.

mod file;
mod managed;
mod noise;
mod parts;
mod program;
mod secret;
mod slow;

use std::collections::HashMap;

use async_trait::async_trait;
use tf_provider::schema::{Block, Schema};
use tf_provider::value::ValueEmpty;
use tf_provider::{Diagnostics, DynamicDataSource, DynamicResource, Provider, map, serve};
use tokio::signal::unix::{SignalKind, signal};

use managed::Managed;

struct Plumbtest;

#[async_trait]
impl Provider for Plumbtest {
    type Config<'a> = ValueEmpty;
    type MetaState<'a> = ValueEmpty;

    fn schema(&self, _: &mut Diagnostics) -> Option<Schema> {
        Some(Schema { version: 1, block: Block::default() })
    }

    fn get_resources(&self, _: &mut Diagnostics) -> Option<HashMap<String, Box<dyn DynamicResource>>> {
        Some(map! {
            "file" => Managed(file::File),
            "parts" => Managed(parts::Parts),
            "secret" => Managed(secret::Secret),
            "slow" => Managed(slow::Slow),
        })
    }

    fn get_data_sources(&self, _: &mut Diagnostics) -> Option<HashMap<String, Box<dyn DynamicDataSource>>> {
        Some(map! {
            "noise" => noise::Noise,
            "program" => program::Program,
        })
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // An interrupt goes to the whole group of processes; it is for terraform, which then asks its providers to stop.
    let _kept = signal(SignalKind::interrupt())?;
    serve("plumbtest", Plumbtest).await
}
