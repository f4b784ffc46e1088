#!/usr/bin/env bash
# build.sh [FOLDER]: builds kube-apiserver, kube-controller-manager, kube-scheduler and kwok from their Go modules into FOLDER (default:
# ~/.cache/nodeyard/kubernetes), where they are not there yet. Six minutes on two quiet cores, and 2 GiB in Go's caches.
set -euo pipefail
VERSION=${KUBE_VERSION:-1.33.4} KWOK=${KWOK_VERSION:-0.7.0}
folder=${1:-${NODEYARD_KUBERNETES:-$HOME/.cache/nodeyard/kubernetes}}
mkdir -p "$folder"
out=$(cd "$folder" && pwd)
needs_go() {
  local minor
  minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
  ((${minor:-0} >= 21)) && return
  echo "building Kubernetes needs Go 1.21 or later (it fetches the version that the modules want); install golang-go, or build into $out elsewhere" >&2
  exit 1
}
# Two at once build once.
exec 9>"$out/.lock"
flock 9
missing=()
for program in kube-apiserver kube-controller-manager kube-scheduler kwok; do
  [[ -x $out/$program ]] || missing+=("$program")
done
((${#missing[@]})) || exit 0
needs_go
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
source=$(go mod download -json "k8s.io/kubernetes@v$VERSION" | sed -n 's/.*"Dir": "\(.*\)",/\1/p')
{
  printf 'module kube\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$VERSION"
  # What the module calls v0.0.0 is published under the same version, with 0 in place of 1.
  grep -oE 'k8s\.io/[a-z0-9-]+ v0\.0\.0$' "$source/go.mod" | awk '{print $1}' | sort -u |
    while read -r module; do printf '\t%s => %s v0.%s\n' "$module" "$module" "${VERSION#1.}"; done
  echo ')'
} >go.mod
cp "$source/go.sum" go.sum
export GOFLAGS=-mod=mod
packages=()
for program in "${missing[@]}"; do
  case $program in
    kwok) packages+=(sigs.k8s.io/kwok/cmd/kwok) && go get "sigs.k8s.io/kwok/cmd/kwok@v$KWOK" ;;
    *) packages+=("k8s.io/kubernetes/cmd/$program") && go get "k8s.io/kubernetes/cmd/$program@v$VERSION" ;;
  esac >get.log 2>&1 || { cat get.log >&2; exit 1; }
done
# All at once and in one module, since they share nine tenths of their packages, and one links while another compiles; without debug data, and
# with a compiler that seldom collects its garbage: eleven minutes of a processor.
mkdir new
GOGC=400 go build -trimpath -gcflags=all=-dwarf=false -ldflags '-s -w' -o new/ "${packages[@]}"
mv new/* "$out/"
