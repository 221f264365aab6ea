#!/usr/bin/env bash
# Builds the Terraform provider that only the tests use, and lays it out as a mirror that terraform installs from.
# The first build takes its crates from the registry; later ones need no network.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_cargo

if ! command -v protoc >/dev/null; then
  say "protoc is missing: the tests with a provider of our own are skipped"
  exit 0
fi

target=${CARGO_TARGET_DIR:-$ROOT/target}/provider
case $(uname -m) in
  aarch64 | arm64) platform=linux_arm64 ;;
  *) platform=linux_amd64 ;;
esac

# A directory of its own: another lock file and other features must not rebuild what the workspace has built.
CARGO_TARGET_DIR=$target cargo build --quiet --locked --manifest-path tests/provider/Cargo.toml

built=$target/debug/terraform-provider-plumbtest
place=$target/mirror/plumbline.test/plumbline/plumbtest/0.1.0/$platform
name=terraform-provider-plumbtest_v0.1.0
if ! cmp -s "$built" "$place/$name"; then
  mkdir -p "$place"
  cp "$built" "$place/.$name.new"
  mv -f "$place/.$name.new" "$place/$name"
fi
