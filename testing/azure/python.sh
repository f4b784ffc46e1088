#!/bin/sh
# Lets Microsoft's own clients for Python, and the azure driver of the real Nodepool, all from PyPI, use the double: they launch, list and delete,
# and the driver uploads an image. Takes some minutes, most of them for the installation.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../python-judges.sh" "$here" "azure-mgmt-compute==39.0.0 azure-mgmt-network==33.1.0" node "$here/double/main.ts"
