#!/usr/bin/env bash
# All that CI checks. Every step runs, also after one failed; the table at the end has times and results.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
need_cargo
need_git

# Settings of a person's shell must not decide what CI checks.
unset RUSTFLAGS RUSTDOCFLAGS CARGO_BUILD_TARGET TF_CLI_ARGS TF_LOG TF_DATA_DIR
# Nothing here is built twice: incremental data would only cost disk and time.
export CARGO_INCREMENTAL=0
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}

table=$(mktemp)
output=$(mktemp)
reasons=$(mktemp)
trap 'rm -f "$table" "$output" "$reasons"' EXIT
failures=0
skips=0
began=$SECONDS

# `check NAME COMMAND…` runs a step. One that prints a line `SKIP: reason` counts as skipped as well.
check() {
  local name=$1 from=$SECONDS status=0 word=ok skipped
  shift
  printf '\n== %s\n' "$name"
  "$@" 2>&1 | tee "$output"
  status=${PIPESTATUS[0]}
  skipped=$(grep -c '^SKIP: ' "$output" || true)
  skips=$((skips + skipped))
  [ "$skipped" -eq 0 ] || word=skipped
  if [ "$status" -ne 0 ]; then
    word=FAILED
    failures=$((failures + 1))
    {
      printf '\n== %s, why:\n' "$name"
      grep -E '^ *(error|FAIL|TIMEOUT|thread .* panicked)|No space left|: warning' "$output" | cut -c 1-300 | head -n 12
      tail -n 4 "$output" | cut -c 1-300
    } >>"$reasons"
  fi
  printf '%5d s  %-8s %s\n' "$((SECONDS - from))" "$word" "$name" >>"$table"
}

# One TLS stack: the command must fail, because nothing may depend on these crates.
no_second_tls_stack() {
  local crate
  for crate in aws-lc-sys openssl-sys; do
    if cargo tree --locked --workspace --target all -i "$crate" 2>/dev/null; then
      return 1
    fi
  done
}

format() {
  cargo fmt --all --check && cargo fmt --manifest-path tests/provider/Cargo.toml --check
}

deny() {
  if ! cargo deny --version >/dev/null 2>&1; then
    skip "cargo-deny is not installed"
    return 0
  fi
  cargo deny check bans licenses sources
}

migrations() {
  local squawk
  if ! squawk=$(python_tool squawk-cli squawk); then
    skip "squawk-cli is not cached and PyPI cannot be reached"
    return 0
  fi
  "$squawk" --config .squawk.toml migrations/[0-9]*.sql
}

# Hostile requests against a running emulator: no 5xx, no undocumented answer.
fuzz() {
  local schemathesis
  if ! schemathesis=$(python_tool schemathesis schemathesis); then
    skip "schemathesis is not cached and PyPI cannot be reached"
    return 0
  fi
  scripts/fuzz.sh "$schemathesis"
}

demo() {
  if ! find_terraform && [ -z "${PLUMBLINE_TOOL_MIRROR:-}" ]; then
    skip "no terraform on this machine, and no mirror to download it from"
    return 0
  fi
  scripts/demo.sh
}

check "format" format
check "pure half of core compiles alone" cargo check -q --locked -p plumbline-core --no-default-features
check "lints" cargo clippy -q --locked --workspace --all-targets -- -D warnings
check "one TLS stack" no_second_tls_stack
check "licences and sources" deny
check "migrations" migrations
check "schema and API document are fresh" scripts/generate.sh --check
check "tests" scripts/test.sh
counts=$(tail -n 1 "$output")
check "demo" demo
check "hostile requests" fuzz

# Where only the end of the output is kept, it says what went wrong.
cat "$reasons"
printf '\n'
cat "$table"
printf '%5d s  in all\n\n' "$((SECONDS - began))"
say "disk: $(df -Ph . | awk 'NR == 2 { print $4 " free of " $2 }')"
say "steps: $failures failed, $skips skips"
say "tests: $counts"
[ "$failures" -eq 0 ]
