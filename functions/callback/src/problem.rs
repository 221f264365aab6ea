//! Executors' errors on the wire.

use axum::http::StatusCode;
use plumbline_api::problem::Problem;
use plumbline_core::executors::ExecutorError;
use plumbline_core::runs::RunError;

/// A launch is recorded in a moment, or found by one of the next sweeps.
const LAUNCH_RECORDED_IN_SECONDS: u64 = 5;

/// What went wrong with a ticket or a token.
pub(crate) fn of_executor(error: ExecutorError) -> Problem {
    let sentence = error.to_string();
    match error {
        ExecutorError::TicketVoid => {
            Problem::new(StatusCode::GONE, "ticket-void", "Ticket is void", sentence)
        }
        ExecutorError::TicketReused => {
            Problem::new(StatusCode::CONFLICT, "ticket-reused", "Ticket was traded already", sentence)
        }
        ExecutorError::Protocol(_) => Problem::new(
            StatusCode::BAD_REQUEST,
            "protocol-unsupported",
            "Protocol is not supported",
            sentence,
        ),
        ExecutorError::Token => {
            Problem::new(StatusCode::UNAUTHORIZED, "token-invalid", "Token is not valid", sentence)
        }
        ExecutorError::IdentityRefused(_) => {
            Problem::new(StatusCode::FORBIDDEN, "identity-refused", "Identity was not proved", sentence)
        }
        ExecutorError::IdentityUnavailable(error) => {
            tracing::warn!(%error, "who trades a ticket cannot be found out");
            Problem::unavailable("AWS cannot be asked at the moment who is calling.")
        }
        ExecutorError::LaunchUnrecorded => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "launch-unrecorded",
            "The launch is not recorded yet",
            sentence,
        )
        .retry_after(LAUNCH_RECORDED_IN_SECONDS),
        ExecutorError::LeaseLost => lease_lost(),
        ExecutorError::Run(error) => error.into(),
        ExecutorError::Db(error) => error.into(),
        ExecutorError::Key(error) => Problem::internal(&error),
        ExecutorError::Launcher(error) => Problem::internal(&error),
    }
}

/// What went wrong with a report.
pub(crate) fn of_run(error: RunError) -> Problem {
    error.into()
}

fn lease_lost() -> Problem {
    RunError::LeaseLost.into()
}
