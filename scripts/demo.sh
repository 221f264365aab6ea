#!/usr/bin/env bash
# One change from Git to applied, on this machine: the product's own command line and Git, nothing privileged. What it
# shows is checked on the way: a demo that goes wrong fails. KEEP=1 leaves the scratch directory for a look.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_cargo
need_git
need_terraform

step() { printf '\n\033[1m── %s\033[0m\n' "$*"; }
run() {
  printf '\033[2m$ %s\033[0m\n' "$*"
  "$@" | tee "$said"
}
# What the last command must have said, as an extended regular expression that a whole line begins with.
expect() { grep -Eq -- "^$1" "$said" || die "the last command should have said: $1"; }

step "Building"
cargo build -q --workspace --bins

scratch=$(mktemp -d "${TMPDIR:-/tmp}/plumbline-demo-XXXXXX")
chmod 711 "$scratch"
home=$scratch/plumbline
said=$scratch/said
pids=()
stop() {
  [ ${#pids[@]} -eq 0 ] || kill -TERM "${pids[@]}" 2>/dev/null || true
  [ ${#pids[@]} -eq 0 ] || wait "${pids[@]}" 2>/dev/null || true
  pids=()
}
# Processes whose command line names the scratch directory: everything that the demo starts does.
left_running() {
  local process
  for process in /proc/[0-9]*; do
    if tr '\0' ' ' 2>/dev/null <"$process/cmdline" | grep -qF -- "$scratch"; then
      printf '%s ' "${process#/proc/}"
    fi
  done 2>/dev/null
}
finish() {
  local status=$?
  trap - EXIT INT TERM
  stop
  if [ "$status" -ne 0 ]; then
    printf '\nThe demo failed. The last lines of the emulator:\n' >&2
    tail -n 30 "$scratch/emulator.log" >&2 2>/dev/null || true
  fi
  if [ -n "${KEEP:-}" ]; then say "Kept: $scratch"; else rm -rf "$scratch"; fi
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Waits until a line of the file matches, and prints what the pattern captured.
wait_for() {
  local file=$1 pattern=$2 pid=$3 found
  for _ in $(seq 600); do
    found=$(sed -n "s|$pattern|\1|p" "$file" 2>/dev/null | head -n 1)
    if [ -n "$found" ]; then
      printf '%s\n' "$found"
      return 0
    fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  return 1
}

# The first value of a field in a JSON document.
field() { grep -o "\"$1\": *\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; }

began=$SECONDS
step "Starting Plumbline: Postgres, object store, API, executors"
"$BIN/plumbline-emulator" up --dir "$home" --cache "$CACHE" --port 0 --store-port 0 --pg-port 0 --fsync off \
  >"$scratch/emulator.out" 2>"$scratch/emulator.log" &
pids+=($!)
url=$(wait_for "$scratch/emulator.out" '^ *API *\(http[^ ]*\)$' $!) || die "the emulator did not start"
say "The API is at $url."

step "Making a Git repository with a small stack, served over HTTP"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git init -q --bare -b main "$scratch/git/infrastructure.git"
"$BIN/plumbline-emulator" git-serve --root "$scratch/git" >"$scratch/git.out" 2>"$scratch/git.log" &
pids+=($!)
repository=$(wait_for "$scratch/git.out" '^\(http.*\)$' $!)/infrastructure.git || die "the Git server did not start"
work=$scratch/work
git clone -q "$repository" "$work" 2>/dev/null
cp -r examples/demo-stack/. "$work"
commit() {
  git -C "$work" add -A
  git -C "$work" -c user.name=demo -c user.email=demo@localhost commit -q -m "$1"
  git -C "$work" push -q origin HEAD:main
}
commit "Two services"
say "$repository"
(cd "$work" && git ls-files | sed 's/^/  /')

step "Signing in and importing the repository"
export PLUMB_CONFIG_DIR=$scratch/config PLUMB_SERVER=$url PLUMB_BUSINESS_UNIT=default
export PATH=$BIN:$PATH
run plumb login --email admin@localhost --password-stdin <"$home/admin-password"
run plumb workspace import "$repository"
run plumb workspace list
expect '[0-9a-f-]{36} +dev +dev .* environments/dev +free'
workspace=$(plumb workspace list --json | field name)

# A secret variable comes from the environment: a command line can be read by everybody on the machine.
export admin_token=not-for-your-eyes

# Plans and applies; a run that waits for approval ends the first command with exit code 3. `$2` is what it changes.
change() {
  local status=0 run
  run plumb run apply "$workspace" --message "$1" --secret-var admin_token || status=$?
  [ "$status" -eq 3 ] || die "the run should wait for approval, but plumb ended with $status"
  expect "Plan: $2"
  run=$(plumb run list --workspace "$workspace" --status awaiting_approval --json | field id)
  step "The plan, and its approval: $1"
  run plumb approve "$run" --yes --comment "looks right"
  expect "Applied. Plan: $2"
}

step "Planning without changing anything"
run plumb run plan "$workspace"
expect 'Plan: 8 to add, 0 to change, 0 to destroy,'

step "Planning the first change"
change "Two services" '8 to add, 0 to change, 0 to destroy,'

step "Changing the code: a third service, another port"
cat >"$work/environments/dev/services.auto.tfvars" <<'TF'
services = {
  web    = { replicas = 2, port = 8080 }
  api    = { replicas = 3, port = 9000 }
  worker = { replicas = 1, port = 9100 }
}
TF
(cd "$work" && git --no-pager diff --stat)
commit "A worker; web moves to 8080"
change "A worker; web moves to 8080" '3 to add, 0 to change, 1 to destroy, 1 of these replaced,'

step "What happened to the state"
run plumb state list "$workspace"
expect '[0-9a-f-]{36} +2 +current '
expect '[0-9a-f-]{36} +1 '
run plumb state diff "$(plumb state list "$workspace" --json | field id)"
expect '\+ module.service\["worker"\].terraform_data.replica\[0\]$'
expect '~ module.service\["web"\].terraform_data.address$'

step "Runs, and the audit chain"
run plumb run list
[ "$(grep -Ec ' apply +applied ' "$said")" -eq 2 ] || die "two runs should be applied"
run plumb audit verify
expect 'The audit log is whole: [1-9][0-9]* entries in 1 chains'
! grep -qF -- "$admin_token" "$scratch/emulator.log" || die "the emulator's log has a secret variable in it"

took=$((SECONDS - began))
stop
for _ in $(seq 50); do
  left=$(left_running)
  [ -n "$left" ] || break
  sleep 0.1
done
[ -z "$left" ] || die "processes of the demo are left: $left"

step "Done in $took s"
# A busy machine is no defect; a demo of minutes is one.
[ "$took" -le 180 ] || die "that is more than three minutes: something waits for what it should not wait for"
[ "$took" -lt 60 ] || say "note: it takes less than a minute on a machine that is not busy"
say "Nothing is left running. To look around for yourself:"
say "  make up                      the same, on http://127.0.0.1:8080, until you stop it"
say "  plumb --help                 every command; the programs lie in $BIN"
say "  examples/demo-stack          the stack of this demo"
