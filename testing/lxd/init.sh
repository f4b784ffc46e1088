#!/bin/sh
# The whole system of the test image: takes an address by DHCP, makes a host key of its own, and answers SSH.
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts 2>/dev/null
ip link set lo up
if ip link set eth0 up; then udhcpc -i eth0 -q -n -t 30 -T 1 -s /etc/udhcpc; fi
[ -s /etc/hostkey ] || dropbearkey -t ed25519 -f /etc/hostkey >/dev/null 2>&1
# What cloud-init would do with its user data, which LXD writes there when it makes the container.
for home in /root /home/ubuntu; do
  sed -n 's/^ *- \(ssh-.*\)/\1/p' /etc/user-data >"$home/.ssh/authorized_keys"
done
echo "nodeyard test image: $(hostname) is up"
trap 'exit 0' PWR TERM INT
dropbear -F -E -s -r /etc/hostkey &
while :; do wait; sleep 1; done
