//! Who reads what a run printed: recorded, because it may hold what nobody was meant to print.

use std::time::Duration;

use serde_json::Value;

use super::{Run, ending};
use crate::access::Ctx;
use crate::audit::{self, Action};
use crate::db::{DbError, Query};

/// How long one entry stands for reading the same thing again.
const NOTED_FOR: Duration = Duration::from_secs(3600);

/// Records that the caller reads something of a run. `what` says what; how far into it is not told.
pub(super) async fn record(query: &impl Query, run: &Run, ctx: &Ctx, what: Value) -> Result<(), DbError> {
    let entry = ending::entry(run, ctx.actor.clone(), Action::RunRead, what);
    audit::service::record_read(query, &entry, NOTED_FOR).await
}
