#!/usr/bin/env bash
# build.sh [FOLDER]: builds the Gitea server from its Go module into FOLDER (default: ~/.cache/nodeyard/gitea), with the templates and options
# that it reads, where it is not there yet. Twelve minutes on two quiet cores. 1.27 has another module name, which proxies may not have.
set -euo pipefail
VERSION=${GITEA_VERSION:-1.26.0}
folder=${1:-${NODEYARD_GITEA:-$HOME/.cache/nodeyard/gitea}}
mkdir -p "$folder"
out=$(cd "$folder" && pwd)
# Two at once build once.
exec 9>"$out/.lock"
flock 9
[[ -x $out/gitea ]] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
source=$(go mod download -json "code.gitea.io/gitea@v$VERSION" | sed -n 's/.*"Dir": "\(.*\)",/\1/p')
{
  printf 'module built\n\ngo 1.26\n\nrequire code.gitea.io/gitea v%s\n' "$VERSION"
  # A module does not have the replacements of those that it needs.
  grep '=>' "$source/go.mod" | sed 's/^replace //; s/^[[:space:]]*/replace /'
} >go.mod
GOGC=400 CGO_ENABLED=1 go build -gcflags=all=-dwarf=false -mod=mod -trimpath -ldflags='-s -w' -tags 'sqlite sqlite_unlock_notify' -o gitea code.gitea.io/gitea
mkdir -p "$out/static"
cp -r --no-preserve=mode "$source/options" "$source/templates" "$out/static/"
mkdir -p "$out/static/public/assets"
mv gitea "$out/gitea"
