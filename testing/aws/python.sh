#!/bin/sh
# Lets the AWS driver of the real Nodepool, from PyPI, launch, list and delete a node against the double. Takes about a minute.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
# Nodepool needs cachetools without saying so, and pkg_resources of an older setuptools.
"$folder/python/bin/pip" install --quiet 'setuptools<80' cachetools nodepool==11.0.0
: >"$folder/log"
"$("$here/install.sh")" "$here/double/server.py" >"$folder/log" 2>&1 &
server=$!
tries=0
until grep -q '^listens ' "$folder/log"; do
  tries=$((tries + 1))
  [ "$tries" -lt 120 ] || { cat "$folder/log" >&2; exit 1; }
  sleep 0.5
done
url="http://127.0.0.1:$(sed -n 's/^listens //p' "$folder/log")"
AWS_ENDPOINT_URL=$url AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing \
  "$folder/python/bin/python" "$here/python-driver.py" "$url"
