#!/usr/bin/env bash
# boskos.sh [FOLDER]: builds the real Boskos, server and boskosctl, from its Go module into FOLDER (default: ~/.cache/nodeyard/boskos), where
# they are not there yet. Seven minutes on two busy cores.
set -euo pipefail
VERSION=${BOSKOS_VERSION:-v0.0.0-20250908171729-5e4ab7284e90}
folder=${1:-${NODEYARD_BOSKOS:-$HOME/.cache/nodeyard/boskos}}
mkdir -p "$folder"
out=$(cd "$folder" && pwd)
# Two at once build once.
exec 9>"$out/.lock"
flock 9
[[ -x $out/boskos && -x $out/boskosctl ]] && exit 0
minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
if ((${minor:-0} < 21)); then
  echo "building Boskos needs Go 1.21 or later (it fetches the version that the module wants); install golang-go, or build into $out elsewhere" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GOBIN=$work GOGC=400 go install -trimpath -gcflags=all=-dwarf=false -ldflags '-s -w' \
  "sigs.k8s.io/boskos/cmd/boskosctl@$VERSION" "sigs.k8s.io/boskos/cmd/boskos@$VERSION"
mv "$work"/boskos "$work"/boskosctl "$out/"
