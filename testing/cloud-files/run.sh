#!/bin/sh
# The same clouds.yaml, secure.yaml and kubeconfig, read by the clouds' own Python clients and by our drivers. Takes about a minute.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# One environment each: what they need does not fit together.
for client in openstack kubernetes; do python3 -m venv "$folder/$client"; done
# A later dogpile.cache keeps pip busy for many minutes.
"$folder/openstack/bin/pip" install --quiet openstacksdk==4.4.0 'dogpile.cache<1.4'
"$folder/kubernetes/bin/pip" install --quiet kubernetes==29.0.0
"$here/compare.sh" "$folder/openstack/bin/python" "$folder/kubernetes/bin/python"
