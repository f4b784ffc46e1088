#!/bin/sh
# Lets IBM's own clients for Python, and the ibmvpc driver of the real Nodepool, all from PyPI, use the double: they launch, list, upload and delete.
# Takes about a minute. Fails, too, if anything that they or the double sent does not fit the models of IBM's SDK.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../python-judges.sh" "$here" ibm-vpc==0.36.0 node "$here/double/main.ts"
