#!/usr/bin/env bash
# Removes what was built and cached. What Plumbline keeps here (its database, states and keys) stays.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
rm -rf "${CARGO_TARGET_DIR:-$ROOT/target}" "$CACHE"
say "Removed target and .cache."
if [ -d .plumbline ]; then
  say "Kept .plumbline: the database, states and keys of 'make up'. Remove it yourself if you are sure."
fi
