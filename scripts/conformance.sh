#!/usr/bin/env bash
# Runs the matrix of real clients against a state backend that runs somewhere, and prints a table; fails if a case fails.
# URL: a state's address with `{}` where its name goes (each case takes one), or a Plumbline's address (each case makes a
# workspace). TOKEN is the password, USER_NAME the user name of Basic authentication; METHODS=twins for gateways that know
# neither LOCK nor UNLOCK; CASES runs those whose name contains it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_cargo
[ -n "${URL:-}" ] || die "URL is missing: make conformance URL='https://host/state/{}' TOKEN=…"
find_terraform || die "neither terraform nor tofu is on PATH: there is no client to run"

cargo build -q -p plumbline-tests --bin conformance
export CONFORMANCE_TOKEN=${TOKEN:-} CONFORMANCE_USER=${USER_NAME:-terraform}
export CONFORMANCE_METHODS=${METHODS:-usual} CONFORMANCE_CASES=${CASES:-}
exec "$BIN/conformance" "$URL"
