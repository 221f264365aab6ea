//! A ticket for the bundle, and staying alive.

use axum::Json;
use axum::extract::State;
use plumbline_api::body::Body;
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::executors;
use plumbline_core::protocol::{Bundle, HeartbeatAnswer, TradeRequest};

use crate::caller::Attempt;
use crate::problem::of_executor;

pub(crate) async fn trade(
    State(deps): State<Deps>,
    Body(request): Body<TradeRequest>,
) -> Result<Json<Bundle>, Problem> {
    executors::trade::trade(&deps, &request).await.map(Json).map_err(of_executor)
}

pub(crate) async fn heartbeat(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
) -> Result<Json<HeartbeatAnswer>, Problem> {
    executors::service::heartbeat(&deps, &caller).await.map(Json).map_err(of_executor)
}
