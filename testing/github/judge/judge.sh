#!/usr/bin/env bash
# judge.sh FOLDER: plays a scale set against the double of GitHub with GitHub's own client, a checkout of actions/scaleset in FOLDER, which no
# module proxy has to have. By hand, after a change of the double.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scaleset=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/main.go" "$work/"
cd "$work"
{
  printf 'module judge\n\nrequire github.com/actions/scaleset v0.0.0\n\nreplace github.com/actions/scaleset => %s\n' "$scaleset"
  sed -n '/^go /p; /^require (/,/^)/p' "$scaleset/go.mod"
} >go.mod
cp "$scaleset/go.sum" go.sum
go build -mod=mod -o judge .
node "$here/judge.mjs" "$work/judge"
