#!/usr/bin/env bash
# Removes what was built, cached and kept here. A running emulator is stopped first.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
if [ -d .plumbline ] && [ -x "$BIN/plumbline-emulator" ]; then
  "$BIN/plumbline-emulator" stop --dir .plumbline
fi
rm -rf "${CARGO_TARGET_DIR:-$ROOT/target}" "$CACHE" .plumbline
say "Removed target, .cache and .plumbline."
