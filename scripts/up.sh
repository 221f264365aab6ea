#!/usr/bin/env bash
# Builds the programs and starts the emulator in the foreground; Ctrl-C stops everything.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_cargo
need_git
find_terraform || say "note: no terraform on PATH; runs will try to download it"
cargo build -q --workspace --bins
exec "$BIN/plumbline-emulator" up "$@"
