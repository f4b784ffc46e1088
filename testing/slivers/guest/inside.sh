#!/bin/sh
# Runs the suites of real slivers, or the first job, as on any machine, and hands over what they found by the second serial line: one line with
# the exit code, one with the facts of this machine, then vitest's JSON.
cd /work || exit
. ./guest.env
ln -sfn /work/images /tmp/nodeyard-image-cache
# A machine has an address, which slivers may not reach; this one has no network.
ip link add eth0 type dummy 2>/dev/null && ip address add 198.18.217.1/24 dev eth0 && ip link set eth0 up
# A machine without CI set may leave out what it cannot do; this one may not.
export CI=true NO_COLOR=1
if [ "$SUITES" = first-job ]; then
  mkdir -p /job && mount /dev/vdc /job
  unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child \
    testing/slivers/first-job/run.sh in-namespaces /job /work/node_modules/node/bin/node
  code=$?
  passed=0 && [ $code = 0 ] && passed=1
  printf '{"numTotalTests":1,"numPassedTests":%s,"numFailedTests":%s,"numPendingTests":0,"testResults":[]}' \
    $passed $((1 - passed)) >/run/results.json
else
  node_modules/node/bin/node --disable-warning=ExperimentalWarning node_modules/vitest/vitest.mjs run \
    --config testing/slivers/vitest-config.ts --reporter=verbose --reporter=json --outputFile.json=/run/results.json $SUITES
  code=$?
fi
# A shell expands no pattern behind `>`.
for port in /dev/vport*p1; do :; done
[ -c "$port" ] || echo "nodeyard guest: there is no port to hand the results over"
{
  echo "$code"
  printf '{"kernel":"%s","controllers":"%s","version1":%s,"seconds":%s}\n' "$(uname -r)" \
    "$(cat /sys/fs/cgroup/cgroup.controllers)" "$(grep -c ' - cgroup ' /proc/self/mountinfo)" "$(cut -d. -f1 /proc/uptime)"
  cat /run/results.json
} >"$port"
