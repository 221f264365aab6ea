#!/usr/bin/env bash
# Measures what the design has budgets for, in release builds, and fails over budget. Words choose groups: `queue`.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_cargo
need_git
command -v pgbench >/dev/null || die "pgbench is missing: install Postgres's client programs (postgresql-contrib)"
# The same packages in both commands: others would have other features, and everything would be built twice.
packages=()
for package in tests emulator executor api tfstate signin callback worker outbound reconciler migrate; do
  packages+=(-p "plumbline-$package")
done
cargo build --release --bins --bench budgets "${packages[@]}"
release=${CARGO_TARGET_DIR:-$ROOT/target}/release
exec "$release/plumbline-emulator" with-postgres --fsync on -- \
  cargo bench -q "${packages[@]}" --bench budgets -- "$@"
