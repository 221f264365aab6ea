#!/usr/bin/env bash
# Measures what the design has budgets for, in release builds, and fails over budget.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_cargo
need_git
cargo build -q -p plumbline-emulator
cargo build --release --workspace --bins
cargo bench --no-run -p plumbline-tests
exec "$BIN/plumbline-emulator" with-postgres --fsync on -- cargo bench -p plumbline-tests -- "$@"
