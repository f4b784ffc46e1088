#!/bin/sh
# Lets the client code of the real Zuul, from PyPI, ask for nodes during a rolling restart of two launchers. Takes about a minute.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet 'setuptools<80' zuul==11.0.1
exec node "$here/../../tools/run.mjs" "$here/rolling-restart.ts" "$folder/python/bin/python"
