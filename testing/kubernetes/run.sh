#!/bin/sh
# The suites that need a Kubernetes control plane: builds its programs where they are not there yet (NODEYARD_KUBERNETES, default
# ~/.cache/nodeyard/kubernetes: a folder to keep between runs), then runs the suites. Arguments go to vitest.
set -eu
cd "$(dirname "$0")/../.."
testing/kubernetes/build.sh
exec node tools/run.mjs node_modules/vitest/vitest.mjs run --config testing/kubernetes/vitest-config.ts "$@"
