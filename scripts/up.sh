#!/usr/bin/env bash
# Builds the programs and starts the emulator in the foreground; Ctrl-C stops everything.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_cargo
need_git
find_terraform || say "note: no terraform on PATH: runs fail until there is one, or PLUMBLINE_TOOL_MIRROR names a mirror"
cargo build -q --workspace --bins
exec "$BIN/plumbline-emulator" up "$@"
