#!/bin/sh
# The guest's first process (root.ts): mounts what a machine has, runs the suites of real slivers or the first job as on any machine, and
# hands over what they found: one line with the exit code, one with the facts of this machine, then vitest's JSON. Of control groups it mounts
# v2 and nothing else: that is what it is for.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
mount -t sysfs sysfs /sys
mkdir -p /dev/pts /dev/shm /repository /changes/files /changes/work /work /tmp/nodeyard-image-cache
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
# A folder of the machine that started this kernel, which also gets the results.
. /host/settings
# That machine's working tree as it is now; what the suites write there stays here.
mount -t hostfs -o "$REPOSITORY" none /repository
mount -t overlay -o lowerdir=/repository,upperdir=/changes/files,workdir=/changes/work overlay /work
for image in /host/images/*; do ln -s "$image" /tmp/nodeyard-image-cache; done
# Its mappings are broken in user-mode Linux ("Bad page map", seen in 7.2), and Node does without.
echo 2 >/proc/sys/kernel/io_uring_disabled
ip link set lo up
hostname nodeyard-guest
# A machine has an address, which slivers may not reach; this one has no network.
ip link add eth0 type dummy && ip address add 198.18.217.1/24 dev eth0 && ip link set eth0 up
# A machine without CI set may leave out what it cannot do; this one may not.
export CI=true NO_COLOR=1
cd /work || exit
if [ "$SUITES" = first-job ]; then
  mkdir -p /job && mount /dev/ubdb /job
  unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child \
    testing/slivers/first-job/run.sh in-namespaces /job /work/node_modules/node/bin/node
  code=$?
  passed=0 && [ $code = 0 ] && passed=1
  printf '{"numTotalTests":1,"numPassedTests":%s,"numFailedTests":%s,"numPendingTests":0,"testResults":[]}' \
    $passed $((1 - passed)) >/run/results.json
else
  # shellcheck disable=SC2086
  node_modules/node/bin/node --disable-warning=ExperimentalWarning node_modules/vitest/vitest.mjs run \
    --config testing/slivers/vitest-config.ts --reporter=verbose --reporter=json --outputFile.json=/run/results.json $SUITES
  code=$?
fi
{
  echo "$code"
  printf '{"kernel":"%s","controllers":"%s","version1":%s}\n' "$(uname -r)" "$(cat /sys/fs/cgroup/cgroup.controllers)" \
    "$(grep -c ' - cgroup ' /proc/self/mountinfo)"
  cat /run/results.json
} >/host/results
sync
busybox poweroff -f
