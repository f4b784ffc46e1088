#!/bin/sh
# Lets the AWS driver of the real Nodepool, from PyPI, launch, list and delete a node against the double. Takes about a minute.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../python-judges.sh" "$here" "" "$("$here/install.sh")" "$here/double/server.py"
