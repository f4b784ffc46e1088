#!/bin/sh
# Parks a system at its first start, before it has an identity: network, host keys, sshd and cloud-init come after this script.
# It is saved here once, and every machine that is made of it goes on from here with what it is told on the second serial port.
# Handed to the guest as fw_cfg file opt/org.nodeyard/parked, and only when it is to be saved; run by root.
port=/dev/ttyS1

# A machine that cannot tell its own secrets from its siblings' must never open a port.
refuse() {
  echo "failed $*" >&3
  while :; do sleep 3600; done
}

# Credits 64 bytes and has the generator take them at once: without RNDRESEEDCRNG a seeded one goes on for up to a minute with
# what it had, as all siblings do (random(4), linux/random.h).
reseed() {
  if command -v perl >/dev/null 2>&1; then
    perl -e '
      <STDIN> =~ /^([0-9a-f]{128})$/ or die "no entropy\n";
      open(my $random, "+<", "/dev/random") or die "$!\n";
      ioctl($random, 0x40085203, pack("iia64", 512, 64, pack("H*", $1))) or die "RNDADDENTROPY: $!\n";
      ioctl($random, 0x5207, 0) or die "RNDRESEEDCRNG: $!\n"'
  else
    python3 -c '
import fcntl, struct, sys
entropy = bytes.fromhex(sys.stdin.readline())
assert len(entropy) == 64
with open("/dev/random", "r+b", buffering=0) as random:
    fcntl.ioctl(random, 0x40085203, struct.pack("ii64s", 512, 64, entropy))
    fcntl.ioctl(random, 0x5207)'
  fi
}

# The seed is this machine's now, and what was read of it before is its sibling's: sizes of files, blocks of the disk.
fresh_seed() {
  if [ -d /sys/module/qemu_fw_cfg ]; then
    modprobe -r qemu_fw_cfg || rmmod qemu_fw_cfg
    modprobe qemu_fw_cfg || insmod "$(find /modules /lib/modules -name '*qemu_fw_cfg.ko*' | head -n 1)"
  fi 2>/dev/null
  for disk in /dev/vd?; do blockdev --flushbufs "$disk"; done 2>/dev/null
}

umask 077
stty -F "$port" 115200 raw -echo || exit 1
exec 3<>"$port"
mkdir -p /run/nodeyard /etc/ssh
sync
echo "parked 1" >&3

while read -r word rest <&3; do
  case $word in
    entropy) why=$(echo "$rest" | reseed 2>&1) || refuse "entropy: $why" ;;
    time) date -s "@$rest" >/dev/null || refuse "time" ;;
    machine-id)
      # systemd lays one over it at a first start.
      umount /etc/machine-id 2>/dev/null
      rm -f /etc/machine-id && (umask 022; echo "$rest" >/etc/machine-id) || refuse "machine id"
      ;;
    hostname) hostname "$rest" && (umask 022; echo "$rest" >/etc/hostname) || refuse "hostname" ;;
    host-key) echo "$rest" >>/run/nodeyard/host-key ;;
    go) break ;;
    *) refuse "does not know $word" ;;
  esac
done
rm -f /etc/ssh/ssh_host_*
mv /run/nodeyard/host-key /etc/ssh/ssh_host_ed25519_key || refuse "host key"
fresh_seed
echo "ready" >&3
exec 3>&-
