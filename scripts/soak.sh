#!/usr/bin/env bash
# Runs fault schedules, seed after seed, until MINUTES are over or one breaks an invariant; the failing seed is the
# last line. SEED is where to begin: the same seed gives the same schedule.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_cargo
export PLUMBLINE_TEST_MINUTES=${MINUTES:-10}
export PLUMBLINE_TEST_SEED=${SEED:-$RANDOM}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

cargo build -q -p plumbline-emulator
say "from seed $PLUMBLINE_TEST_SEED, for $PLUMBLINE_TEST_MINUTES minutes"
status=0
"$BIN/plumbline-emulator" with-postgres -- cargo test -q -p plumbline-tests --test it -- \
  --exact faults::schedule::no_schedule_breaks_an_invariant --nocapture 2>&1 | tee "$log" || status=$?
seeds=$(grep -c '^seed ' "$log" || true)
[ "$status" -eq 0 ] || die "a schedule failed; again with: make soak MINUTES=0 SEED=$(sed -n 's/^seed //p' "$log" | tail -n 1)"
say "$seeds schedules passed"
