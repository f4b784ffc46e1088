#!/bin/sh
# Lets Google's own client for Python, and the gce driver of the real Nodepool, both from PyPI, use the double: they launch, list and delete.
# Takes about a minute. Fails, too, if anything that they or the double sent does not fit Google's discovery documents.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../python-judges.sh" "$here" 'google-cloud-compute==1.57.0 google-cloud-storage==3.17.1' node "$here/double/main.ts"
