#!/usr/bin/env bash
# Runs fault schedules of the queue, then histories of the state service, seed after seed, each until MINUTES are over or
# one breaks an invariant; the failing seed is the last line. SEED is where to begin: the same seed gives the same
# schedule. WHAT=schedule or WHAT=states runs only one of them.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_cargo
export PLUMBLINE_TEST_MINUTES=${MINUTES:-10}
export PLUMBLINE_TEST_SEED=${SEED:-$RANDOM}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The test of one module, named by its path.
soak() {
  local what=$1 test=$2 status=0
  say "$what: from seed $PLUMBLINE_TEST_SEED, for $PLUMBLINE_TEST_MINUTES minutes"
  "$BIN/plumbline-emulator" with-postgres -- cargo test -q -p plumbline-tests --test it -- \
    --exact "$test" --nocapture 2>&1 | tee "$log" || status=$?
  [ "$status" -eq 0 ] ||
    die "$what: a seed failed; again with: make soak WHAT=$what MINUTES=0 SEED=$(sed -n 's/^seed //p' "$log" | tail -n 1)"
  say "$what: $(grep -c '^seed ' "$log" || true) seeds passed"
}

# Histories kill the state function's own program.
cargo build -q -p plumbline-emulator -p plumbline-tfstate --bins
case ${WHAT:-all} in
  all | schedule) soak schedule faults::schedule::no_schedule_breaks_an_invariant ;;&
  all | states) soak states faults::states::no_history_breaks_a_promise_of_the_state_service ;;&
  all | schedule | states) ;;
  *) die "WHAT is schedule or states" ;;
esac
