#!/bin/sh
# A fresh Debian becomes a sliver host by one command, and its first job does what jobs do: `npm run e2e:first-job`, as root, with
# mmdebstrap. The machine is a Debian root of its own in namespaces of its own, with this machine's kernel and control groups; what it
# reaches is another network namespace with a name server and a git server. Prints what the operator types and what the job says. Exit
# code 0: all of it happened. `run.sh make FOLDER` makes bundle and root only, for `run.sh in-namespaces FOLDER NODE` in another machine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../../.." && pwd)

if [ "${1:-}" = "" ]; then
  folder=$(mktemp -d "${TMPDIR:-/tmp}/nodeyard-first-job.XXXXXX")
  trap 'rm -rf --one-file-system "$folder"' EXIT
  trap 'exit 1' INT TERM
  "$0" make "$folder"
  unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child "$0" in-namespaces "$folder" "$(command -v node)"
  exit
fi

if [ "$1" = make ]; then
  folder=$2 node=$(command -v node)
  "$node" "$repository/tools/run.mjs" "$repository/tools/build/main.ts" --bundle "$folder/bundle" >&2
  sources=
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    if [ -e "$file" ]; then sources="$sources $file"; fi
  done
  echo "making a Debian" >&2
  # What a machine for jobs has: compilers, git, docker. Packages of slivers are only in apt's cache: the machine has no network, and it
  # is `install` that installs them. The list of packages is the one that `install` names.
  # shellcheck disable=SC2086
  unshare --mount --pid --fork --kill-child --mount-proc mmdebstrap --quiet --variant=minbase \
    --include=ca-certificates,git,make,gcc,ccache,libc6-dev,docker.io,iptables,podman,buildah,runc,systemd-sysv,dbus,dnsmasq-base,openssh-client,iproute2 \
    --customize-hook='chroot "$1" apt-get -qq install --yes --download-only --no-install-recommends lxc lxcfs btrfs-progs nftables openssh-server' \
    --skip=cleanup/apt/cache,cleanup/apt/lists --format=directory bookworm "$folder/root" $sources >"$folder/mmdebstrap.log" 2>&1 ||
    { cat "$folder/mmdebstrap.log" >&2; exit 1; }
  exit
fi

folder=$2 node=$3 root=$2/root
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
# Its own view of control groups, in which it is at the top: slivers are made there.
if grep -q '^0::' /proc/self/cgroup && [ "$(wc -l </proc/self/cgroup)" = 1 ]; then
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
  mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
  cut -d: -f2 /proc/self/cgroup | while read -r name; do
    at=$root/sys/fs/cgroup/${name#name=}
    if [ -z "$name" ]; then at=$root/sys/fs/cgroup/unified; fi
    mkdir "$at"
    case $name in
      "") mount -t cgroup2 cgroup2 "$at" ;;
      name=*) mount -t cgroup -o "none,$name" cgroup "$at" ;;
      *) mount -t cgroup -o "$name" cgroup "$at" ;;
    esac
  done
fi
mount --rbind /dev "$root/dev"
for place in run tmp; do mount -t tmpfs -o mode=1777 tmpfs "$root/$place"; done
chmod 755 "$root/run"
mkdir -p "$root/opt/nodeyard" "$root/opt/bundle" "$root/opt/first-job"
mount --bind -o ro "$repository" "$root/opt/nodeyard"
mount --bind -o ro "$folder/bundle" "$root/opt/bundle"
mount --bind -o ro "$here" "$root/opt/first-job"
cp "$(readlink -f "$node")" "$root/usr/local/bin/node"
printf '#!/bin/sh\nexec node --disable-warning=ExperimentalWarning /opt/nodeyard/packages/nodeyard/cli/src/bin/nodeyard.ts "$@"\n' >"$root/usr/local/bin/nodeyard"
chmod 755 "$root/usr/local/bin/nodeyard"
hostname big-0
echo "nameserver 198.18.220.2" >"$root/etc/resolv.conf"
printf '127.0.0.1 localhost big-0\n' >"$root/etc/hosts"
ip link set lo up
mount -t tmpfs tmpfs /run
mkdir /run/netns
ip netns add world
ip link add eth0 type veth peer name world0 netns world
ip address add 198.18.220.1/24 dev eth0
ip link set eth0 up
ip route add default via 198.18.220.2 2>/dev/null || true
ip -n world address add 198.18.220.2/24 dev world0
ip -n world link set world0 up
ip -n world link set lo up
ip route replace default via 198.18.220.2
# The repository of the job, and who serves it under a name.
chroot "$root" sh -c 'cd /opt/first-job/project && git init -q --bare /srv/job.git &&
  git --git-dir=/srv/job.git --work-tree=. -c user.name=ci -c user.email=ci@git.example add . &&
  git --git-dir=/srv/job.git --work-tree=. -c user.name=ci -c user.email=ci@git.example commit -q -m "a job"'
ip netns exec world chroot "$root" dnsmasq --no-hosts --no-resolv --user=root --address=/git.example/198.18.220.2
ip netns exec world chroot "$root" git daemon --detach --export-all --base-path=/srv
# In a mere chroot the kernel allows no user namespaces.
cd "$root"
pivot_root . mnt
umount --lazy /mnt
exec /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
  sh /opt/first-job/operator.sh
