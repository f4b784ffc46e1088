#!/bin/sh
# python-judges.sh FOLDER 'PACKAGE ...' COMMAND...: starts the double in FOLDER by COMMAND and lets programs of others use it: `with-sdk.py`, if the
# folder has one, and `python-driver.py`, which runs Nodepool's own driver. PACKAGES are those of the first, from PyPI. Both get what the double says
# after `listens `. Fails, too, when the double ends with an error, as it does when something that was sent fits no model.
set -eu
here=$1 packages=$2
shift 2
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
# Nodepool needs cachetools without saying so, and pkg_resources of an older setuptools. Some packages are thousands of files, of which few are
# read, so nothing is compiled beforehand.
# shellcheck disable=SC2086
"$folder/python/bin/pip" install --quiet --no-compile 'setuptools<80' cachetools nodepool==11.0.0 $packages
: >"$folder/log"
"$@" >"$folder/log" 2>&1 &
server=$!
tries=0
until grep -q '^listens ' "$folder/log"; do
  tries=$((tries + 1))
  [ "$tries" -lt 120 ] || { cat "$folder/log" >&2; exit 1; }
  sleep 0.5
done
place=$(sed -n 's/^listens //p' "$folder/log")
for script in "$here/with-sdk.py" "$here/python-driver.py"; do
  [ ! -e "$script" ] || "$folder/python/bin/python" "$script" "$place"
done
kill "$server"
code=0
wait "$server" || code=$?
server=
# 143: SIGTERM ended it.
[ "$code" = 0 ] || [ "$code" = 143 ] || { cat "$folder/log" >&2; exit 1; }
