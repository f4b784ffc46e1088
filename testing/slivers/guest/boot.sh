#!/bin/sh
# The guest's first process. Of control groups it mounts v2 and nothing else: that is what it is for.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
# An initial RAM disk may have mounted some of them already.
for type in proc sysfs devtmpfs; do
  at=/proc; [ $type = sysfs ] && at=/sys; [ $type = devtmpfs ] && at=/dev
  grep -q " $at " /proc/mounts 2>/dev/null || mount -t $type $type $at
done
mkdir -p /dev/pts /dev/shm /work
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
modprobe -a btrfs fuse loop veth ifb virtio_console
ip link set lo up
hostname nodeyard-guest
mount -o noatime /dev/vdb /work
echo "nodeyard guest: up"
sh /work/testing/slivers/guest/inside.sh
sh /work/testing/slivers/guest/orders.sh
sync
# Without an init there is nobody to ask; QEMU ends where a machine would start again.
echo b >/proc/sysrq-trigger
