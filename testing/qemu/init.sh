#!/bin/sh
# The whole system of the test image: tells itself apart by its seed, and answers SSH. No cloud-init: it needs Python.
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/pts; mount -t devpts devpts /dev/pts
for module in /modules/*.ko; do insmod "$module"; done
seed=/sys/firmware/qemu_fw_cfg/by_name/opt/org.nodeyard
if [ -e "$seed/parked/raw" ]; then
  cat "$seed/parked/raw" >/run/parked
  sh /run/parked
fi
from=fw_cfg
file() { cat "$seed/$1/raw"; }
if [ -b /dev/vdb ] && mount -t vfat -o ro /dev/vdb /mnt; then
  from=nocloud
  file() { cat "/mnt/$1"; }
fi
hostname "$(file meta-data | sed 's/.*"local-hostname":"\([a-z0-9-]*\)".*/\1/')"
[ -e /etc/machine-id ] || file meta-data | sed 's/.*"instance-id":"\([a-z0-9-]*\)".*/\1/' >/etc/machine-id
file authorized-keys >/root/.ssh/authorized_keys
file user-data >/etc/user-data
echo "$from" >/etc/seed
ip link set lo up
address=10.0.2.15/24 gateway=10.0.2.2
if [ -e "$seed/network-config/raw" ]; then
  address=$(file network-config | sed 's/.*"addresses":\["\([0-9./]*\)".*/\1/')
  gateway=$(file network-config | sed 's/.*"via":"\([0-9.]*\)".*/\1/')
fi
ip addr add "$address" dev eth0; ip link set eth0 up; ip route add default via "$gateway"
if [ -e /etc/ssh/ssh_host_ed25519_key ]; then
  dropbearconvert openssh dropbear /etc/ssh/ssh_host_ed25519_key /etc/hostkey 2>/dev/null
else
  dropbearkey -t ed25519 -f /etc/hostkey >/dev/null 2>&1
fi
echo "nodeyard test image: $(hostname) is up, seed from $from"
# Says again when it ends, so that a console shows why nobody gets in.
while :; do dropbear -F -E -s -r /etc/hostkey; echo "dropbear ended"; sleep 1; done
