# Shared by the recipes: finding tools, saying what is missing. Sourced, never run.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=$ROOT/.cache
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/local/cargo/bin:/usr/local/bin"
BIN=${CARGO_TARGET_DIR:-$ROOT/target}/debug
cd "$ROOT" || exit 1

say() { printf '%s\n' "$*"; }

# Skips are lines of their own, so that they can be counted.
skip() { printf 'SKIP: %s\n' "$*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

need_cargo() {
  command -v cargo >/dev/null ||
    die "cargo is missing: install Rust (https://rustup.rs) or put cargo on PATH"
}

need_git() {
  command -v git >/dev/null || die "git is missing: install it, or put it on PATH"
}

# Terraform is in no package registry, so it is the one thing that a person may have to install.
find_terraform() {
  local tool
  for tool in terraform tofu; do
    command -v "$tool" >/dev/null && return 0
  done
  return 1
}

need_terraform() {
  find_terraform ||
    die "terraform is missing: install terraform 1.10 or newer (or OpenTofu) and put it on PATH"
}

# A tool from PyPI in a virtual environment of its own: `python_tool squawk-cli squawk` prints its path. The package may
# carry extras and a version: `moto[server]>=5.2.5`.
# Fails when there is no Python, or PyPI cannot be reached and nothing is cached.
python_tool() {
  local package=$1 program=$2 venv=$CACHE/python/$2
  if [ ! -x "$venv/bin/$program" ]; then
    command -v python3 >/dev/null || return 1
    rm -rf "$venv"
    python3 -m venv "$venv" >/dev/null 2>&1 || python3 -m virtualenv -q "$venv" >/dev/null 2>&1 || return 1
    "$venv/bin/pip" install -q --disable-pip-version-check "$package" >/dev/null 2>&1 || {
      rm -rf "$venv"
      return 1
    }
  fi
  printf '%s\n' "$venv/bin/$program"
}
