#!/usr/bin/env bash
# Runs the tests that crash, stop and race things again and again, until MINUTES are over or one fails.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
minutes=${MINUTES:-10}
export PLUMBLINE_TEST_SEED=${SEED:-$RANDOM}
say "seed $PLUMBLINE_TEST_SEED, $minutes minutes"
deadline=$((SECONDS + minutes * 60))
rounds=0
while [ "$SECONDS" -lt "$deadline" ]; do
  scripts/test.sh queue:: reconcile:: || die "round $((rounds + 1)) failed with SEED=$PLUMBLINE_TEST_SEED"
  rounds=$((rounds + 1))
  PLUMBLINE_TEST_SEED=$((PLUMBLINE_TEST_SEED + 1))
done
say "$rounds rounds passed"
