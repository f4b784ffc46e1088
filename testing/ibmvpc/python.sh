#!/bin/sh
# Lets IBM's own clients for Python, and the ibmvpc driver of the real Nodepool, all from PyPI, use the double: they launch, list, upload and delete.
# Takes about a minute. Fails, too, if anything that they or the double sent does not fit the models of IBM's SDK.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
# Nodepool needs cachetools without saying so, and pkg_resources of an older setuptools.
"$folder/python/bin/pip" install --quiet 'setuptools<80' cachetools nodepool==11.0.0 ibm-vpc==0.36.0
: >"$folder/log"
node "$here/double/main.ts" >"$folder/log" 2>&1 &
server=$!
tries=0
until grep -q '^listens ' "$folder/log"; do
  tries=$((tries + 1))
  [ "$tries" -lt 120 ] || { cat "$folder/log" >&2; exit 1; }
  sleep 0.5
done
url=$(sed -n 's/^listens //p' "$folder/log")
"$folder/python/bin/python" "$here/with-sdk.py" "$url"
"$folder/python/bin/python" "$here/python-driver.py" "$url"
kill "$server"
wait "$server" || { cat "$folder/log" >&2; exit 1; }
server=
