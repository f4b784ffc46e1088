export DISTRO_NAME=debian
export DIB_INIT_SYSTEM=systemd
