# In the sliver of the job, as its root: what else runs containers there. Each line of output is one that worked.
set -eu
cd /root/job
# On cgroup v2 the kernel ended all that the job had started when its memory was full.
docker version >/dev/null 2>&1 || { dockerd >dockerd.log 2>&1 & }
timeout 60 sh -c 'until docker version; do sleep 1; done' >/dev/null 2>&1 || { cat dockerd.log; exit 1; }
docker run --rm --memory 50m hello >/dev/null && echo "dockerd: an image, with a limit of memory of its own"

printf 'FROM scratch\nCOPY hello /hello\nRUN ["/hello"]\n' >/tmp/Dockerfile
for isolation in chroot oci; do
  buildah bud -q --isolation $isolation --network host -t localhost/built -f /tmp/Dockerfile . >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
  echo "buildah: a RUN step, isolation $isolation"
done

podman="podman --runtime runc --cgroup-manager=cgroupfs"
$podman run --rm --network=host localhost/built /hello >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
echo "podman: the image that buildah made"

# A systemd as the first process of a container that has this sliver's programs and nothing else.
mkdir -p /srv/machine && cd /srv/machine
mkdir usr etc proc sys dev run tmp var root
for name in bin sbin lib lib64; do ln -s usr/$name $name; done
cp /etc/passwd /etc/group etc
$podman run -d --name machine --systemd=always --network=none -v /usr:/usr:ro --rootfs "$PWD" /usr/lib/systemd/systemd >/dev/null
timeout 60 sh -c "until $podman exec machine systemctl is-active -q systemd-journald; do sleep 1; done" >/dev/null 2>&1 ||
  { $podman logs machine; exit 1; }
$podman exec machine systemd-run -q --wait true
echo "systemd: its journal, and a unit that was started and ended"
$podman rm -f --time 0 machine >/dev/null
