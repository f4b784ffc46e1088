#!/bin/sh
# compare.sh PYTHON_WITH_OPENSTACKSDK PYTHON_WITH_KUBERNETES
set -eu
here=$(cd "$(dirname "$0")" && pwd)
failed=0
compare() {
  python=$1 client=$2 name=$3 said=$4
  theirs=$("$python" "$here/judge.py" "$client" "$name" | tr -d ' ')
  ours=$(node "$here/../../tools/run.mjs" "$here/../../packages/$said" "$here" "$name")
  if [ "$theirs" = "$(echo "$ours" | tr -d " ")" ]; then
    echo "same: $client $name"
  else
    echo "differs: $client $name: $theirs, ours $ours"
    failed=1
  fi
}
for cloud in both secure-only; do compare "$1" openstack "$cloud" drivers/openstack/test/clouds/said.ts; done
for context in number float basic; do compare "$2" kubernetes "$context" drivers/kubernetes/test/said.ts; done
exit "$failed"
