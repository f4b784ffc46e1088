#!/bin/sh
# The first process of namespaces of its own: everything that the server starts or mounts ends with it. `$1`: its folder, `$2`: name of its
# control groups, where the host has those of version 1.
set -eu
mount --make-rprivate /
# The host's /sys shows the links of the host's network.
mkdir "$1/cgroup"
mount --rbind /sys/fs/cgroup "$1/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$1/cgroup" /sys/fs/cgroup
umount -l "$1/cgroup"
for group in /sys/fs/cgroup/*/; do
  [ -e "$group/cgroup.procs" ] || continue
  mkdir -p "$group/$2"
  for set in cpuset.cpus cpuset.mems; do
    if [ -e "$group/$set" ]; then cat "$group/$set" >"$group/$2/$set"; fi
  done
  echo 0 >"$group/$2/cgroup.procs"
done
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
mkdir "$1/lxd"
LXD_DIR="$1/lxd" exec lxd --group root
