//! Executors: tickets, the trade, launches, liveness.
