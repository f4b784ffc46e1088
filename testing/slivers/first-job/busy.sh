# In the sliver of the job, as its root: containers that fork, write to the disk and fill their memory. Each is started again when it ends: what
# the kernel keeps for processes that are gone counts as memory, too.
set -eu
mkdir -p /srv/tools/usr
for name in bin lib lib64; do ln -sf "usr/$name" /srv/tools/; done
tar -C /srv/tools -c . | docker import - tools >/dev/null
run() { docker run --detach --restart always --name "$1" --memory "$2" -v /usr:/usr:ro tools /bin/sh -c "$3"; }
run fills 50m 'exec tail /dev/zero'
run writes 100m 'while :; do dd if=/dev/zero of=/f bs=1M count=100; sync; rm -f /f; done 2>/dev/null'
run forks 200m 'while :; do for i in 1 2 3 4 5 6 7 8; do (while :; do (:); done) & done; wait; done'
