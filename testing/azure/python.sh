#!/bin/sh
# Lets Microsoft's own clients for Python, and the azure driver of the real Nodepool, all from PyPI, use the double: they launch, list and delete,
# and the driver uploads an image. Takes some minutes, most of them for the installation.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
# Nodepool needs cachetools without saying so, and pkg_resources of an older setuptools. The clients are thousands of files, of which few are read.
"$folder/python/bin/pip" install --quiet --no-compile \
  'setuptools<80' cachetools nodepool==11.0.0 azure-mgmt-compute==39.0.0 azure-mgmt-network==33.1.0
node "$here/double/main.ts" >"$folder/log" 2>&1 &
server=$!
tries=0
until grep -q '^listens ' "$folder/log"; do
  tries=$((tries + 1))
  [ "$tries" -lt 120 ] || { cat "$folder/log" >&2; exit 1; }
  sleep 0.5
done
sed -n 's/^listens //p' "$folder/log" >"$folder/place.json"
"$folder/python/bin/python" "$here/with-sdk.py" "$folder/place.json"
"$folder/python/bin/python" "$here/python-driver.py" "$folder/place.json"
