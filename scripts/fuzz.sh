#!/usr/bin/env bash
# Schemathesis against a running emulator. Argument: the program.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
schemathesis=$1

scratch=$(mktemp -d "${TMPDIR:-/tmp}/plumbline-fuzz-XXXXXX")
chmod 711 "$scratch"
home=$scratch/plumbline
"$BIN/plumbline-emulator" up --dir "$home" --cache "$CACHE" --port 0 --store-port 0 --pg-port 0 --fsync off \
  >"$scratch/out" 2>"$scratch/log" &
emulator=$!
finish() {
  kill -TERM "$emulator" 2>/dev/null || true
  wait "$emulator" 2>/dev/null || true
  rm -rf "$scratch"
}
trap finish EXIT
for _ in $(seq 600); do
  [ -f "$home/emulator.json" ] && break
  kill -0 "$emulator" 2>/dev/null || { cat "$scratch/log"; die "the emulator did not start"; }
  sleep 0.1
done
url=$(sed -n 's/.*"url": *"\([^"]*\)".*/\1/p' "$home/emulator.json" | head -n 1)
# Secrets go through pipes and the environment: command lines can be read by everybody.
PLUMBLINE_FUZZ_TOKEN=$(printf '{"email":"admin@localhost","password":"%s"}' "$(cat "$home/admin-password")" |
  curl -fsS "$url/api/v1/auth/token" -H 'content-type: application/json' -d @- |
  sed -n 's/.*"access_token": *"\([^"]*\)".*/\1/p')
export PLUMBLINE_FUZZ_TOKEN
[ -n "$PLUMBLINE_FUZZ_TOKEN" ] || die "the admin could not sign in"
cat >"$scratch/schemathesis.toml" <<'TOML'
[headers]
Authorization = "Bearer ${PLUMBLINE_FUZZ_TOKEN}"
X-Business-Unit = "default"
TOML

# Each of these ends the session that the other requests need: the tool tries ids that it was answered before.
skipped=()
for path in auth/logout auth/logout-all auth/jwt-secrets 'sessions/{id}' 'users/{id}/sessions' 'users/{id}/password'; do
  skipped+=(--exclude-path "/api/v1/$path")
done
hostile() {
  # One worker: Python's parser, which the tool uses, is not safe in several threads.
  (cd "$scratch" && "$schemathesis" --config-file "$1" run "$ROOT/docs/openapi.json" --url "$url" "${skipped[@]}" \
    --phases examples,coverage,fuzzing \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
    --max-examples "${EXAMPLES:-15}" --workers 1 --no-color)
}

status=0
say "Ids of nothing:"
hostile "$scratch/schemathesis.toml" || status=1
# Deleting the workspace, or archiving the unit, would turn every later answer into the same refusal.
skipped+=(--exclude-path-regex '^/api/v1/(auth|health|server-info)')
python3 scripts/fuzz_fixtures.py "$url" >"$scratch/operations.toml"
cat "$scratch/schemathesis.toml" "$scratch/operations.toml" >"$scratch/known.toml"
cat >>"$scratch/known.toml" <<'TOML'

[[operations]]
include-name = "DELETE /api/v1/workspaces/{id}"
enabled = false

[[operations]]
include-name = "POST /api/v1/business-units/{id}/archive"
enabled = false
TOML
say "Ids of things that are there:"
hostile "$scratch/known.toml" || status=1
exit "$status"
