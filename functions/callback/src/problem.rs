//! Executors' errors on the wire.

use axum::http::StatusCode;
use plumbline_api::problem::Problem;
use plumbline_core::executors::ExecutorError;
use plumbline_core::runs::RunError;

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
