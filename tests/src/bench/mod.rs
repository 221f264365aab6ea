//! Measurements against the budgets. Each compares with a baseline taken in the same run.

pub mod queue;
