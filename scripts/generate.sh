#!/usr/bin/env bash
# Writes what is generated and checked in: `schema`, `openapi`, or both. With --check it compares instead.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_cargo

check=
if [ "${1:-}" = --check ]; then
  check=1
  shift
fi
[ $# -gt 0 ] || set -- schema openapi

cargo build -q -p plumbline-emulator
emulator=$BIN/plumbline-emulator
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT

# Text goes through a file of its own, so that a failure never leaves half a document.
for what in "$@"; do
  case $what in
    schema)
      file=migrations/schema.sql
      "$emulator" with-postgres -- "$emulator" schema >"$fresh"
      ;;
    openapi)
      file=docs/openapi.json
      "$emulator" openapi >"$fresh"
      ;;
    *) die "cannot generate $what" ;;
  esac
  if [ -n "$check" ]; then
    diff -u "$file" "$fresh" || die "$file is not up to date: run make $what"
  else
    mkdir -p "$(dirname "$file")"
    cp "$fresh" "$file"
    chmod 644 "$file"
    say "wrote $file"
  fi
done
