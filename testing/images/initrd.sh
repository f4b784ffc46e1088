#!/bin/sh
# Finds the disk of an image that has no kernel of its own, and hands over to its init.
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for module in /modules/*.ko; do insmod "$module"; done
mount -t ext4 /dev/vda /mnt || { echo "no root file system on /dev/vda"; poweroff -f; }
# A guest that goes on from a saved state reads its seed afresh by loading this again.
mkdir -p /mnt/modules && cp /modules/*qemu_fw_cfg.ko /mnt/modules/
for folder in proc sys dev; do mount --move /$folder /mnt/$folder; done
exec switch_root /mnt /usr/sbin/init
