#!/bin/bash
# The least that a container sliver can cost: floor.sh IMAGE POOL WORK INDEX start|stop. The same snapshot with a limit,
# key, groups with limits, cable and lxc-start as the back end's, without marks, rules, queues and settings.
set -euo pipefail
image=$1 pool=$2 work=$3 index=$4 user=ny-$4 root=$2/floor-$4 etc=$3/etc-$4
address=10.213.1.$4 base=$((0x70000000 + (256 + $4) * 65536)) group=nodeyard-floor/$user
stop() {
  local pid controller
  for pid in $(cat /sys/fs/cgroup/{pids,}/$group/payload/cgroup.procs 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
  while [[ -n $(cat /sys/fs/cgroup/{pids,}/$group/{monitor,payload}/cgroup.procs 2>/dev/null) ]]; do sleep 0.005; done
  ip link del "ny-f$index" 2>/dev/null || true
  for controller in /sys/fs/cgroup/*/nodeyard-floor /sys/fs/cgroup/nodeyard-floor; do
    [[ -d $controller ]] && find "$controller" -depth -type d -exec rmdir {} \; 2>/dev/null || true
  done
  btrfs -q subvolume delete "$root" >/dev/null
  rm -rf "$etc" "$work/conf-$index" "$work/p-$index"
}
start() {
  btrfs -q subvolume snapshot "$image" "$root" >/dev/null
  btrfs -q qgroup limit -e 65536K "$root"
  mkdir -p "$etc" "$root/etc/nodeyard" "$work/p-$index"
  ssh-keygen -q -t ed25519 -N '' -C "$user" -f "$etc/key"
  printf 'HostKey /etc/nodeyard/key\nUsePAM no\nPidFile none\n' >"$etc/sshd_config"
  printf '#!/bin/sh\nmkdir -p /run/sshd\nexec /usr/sbin/sshd -D -e -f /etc/nodeyard/sshd_config\n' >"$etc/init"
  chown -R "$base:$base" "$etc"
  local controller
  for controller in cpu memory pids; do mkdir -p "/sys/fs/cgroup/$controller/$group"; done
  echo 1024 >/sys/fs/cgroup/cpu/$group/cpu.shares
  echo 128M >/sys/fs/cgroup/memory/$group/memory.limit_in_bytes
  echo 64 >/sys/fs/cgroup/pids/$group/pids.max
  cat >"$work/conf-$index" <<CONF
lxc.uts.name = $user
lxc.rootfs.path = dir:$root
lxc.rootfs.options = idmap=container
lxc.idmap = u 0 $base 65536
lxc.idmap = g 0 $base 65536
lxc.init.cmd = /bin/sh /etc/nodeyard/init
lxc.apparmor.profile = unconfined
lxc.mount.auto = proc:mixed sys:ro
lxc.mount.entry = tmpfs run tmpfs nosuid,nodev,mode=755 0 0
lxc.mount.entry = $etc etc/nodeyard none bind,ro 0 0
lxc.autodev = 1
lxc.net.0.type = veth
lxc.net.0.veth.pair = ny-f$index
lxc.net.0.name = eth0
lxc.net.0.flags = up
lxc.net.0.ipv4.address = $address/32
lxc.net.0.ipv4.gateway = 169.254.1.1
lxc.cgroup.dir.monitor = $group/monitor
lxc.cgroup.dir.container = $group/payload
lxc.cgroup.dir.monitor.pivot = $group/pivot
CONF
  env -i PATH=/nonexistent /usr/bin/lxc-start -d -n "$user" -f "$work/conf-$index" -P "$work/p-$index" >/dev/null 2>&1 </dev/null
  ip address add 169.254.1.1/32 dev "ny-f$index"
  ip route add "$address/32" dev "ny-f$index"
}
"$5"
