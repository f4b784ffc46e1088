# What an operator types on a fresh Debian, and what comes of it.
set -eu
cd /root
# Whatever happened: control groups are this machine's, and outlive the namespaces.
trap 'kill $up 2>/dev/null; nodeyard --state /var/lib/nodeyard sliverd uninstall --local --bundle /opt/bundle >uninstall.log 2>&1 || cat uninstall.log >&2' EXIT
up=
type() { printf '\n# %s\n' "$*"; eval "$*"; }

type nodeyard --state /var/lib/nodeyard sliverd install --local --install-packages --bundle /opt/bundle

ssh-keygen -q -t ed25519 -N "" -C "" -f id
cat >nodepool.yaml <<YAML
labels:
  - name: small
  - name: promised
  - name: cached
providers:
  - name: big-0
    driver: sliver
    signing-keys: /var/lib/nodeyard/slivers/signing-keys.json
    authorized-keys: ["$(cut -d' ' -f1,2 id.pub)"]
    machines:
      - { name: big-0, socket: /run/nodeyard-sliver/control/api.sock }
    pools:
      - name: main
        labels:
          - { name: small, memory: 512, disk: 2048, nesting: true }
          - { name: promised, cpu-guarantee: 400, cpu-cap: 400, memory: 128, disk: 512 }
          - { name: cached, memory: 256, disk: 512, caches: [ { name: ccache, size: 100, key: [project], commit: success } ] }
YAML
nodeyard --state /var/lib/nodeyard -c nodepool.yaml up >up.log 2>&1 &
up=$!
until nodeyard --state /var/lib/nodeyard list >/dev/null 2>&1; do sleep 0.3; done
type "nodeyard --state /var/lib/nodeyard request small --wait" | tee request
read -r node target <<LINE
$(sed -n 's/^  \([0-9]*\) .* ssh \(ny-.*\)$/\1 \2/p' request)
LINE
cp /opt/first-job/job.sh .
into() { timeout 240 ssh -q -i id -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "$@"; }
in_node() { into "root@${target#*@}" "$@"; }
type "cat job.sh"
printf '\n# ssh root@%s sh <job.sh\n' "${target#*@}"
in_node sh -s <job.sh 2>&1 | tee said || true
# sliverd looks at what the kernel counts every few seconds.
explain="nodeyard --state /var/lib/nodeyard explain $node"
for _ in $(seq 60); do
  if $explain | grep -q "its memory"; then break; fi
  sleep 1
done
type "$explain" | sed '/^Steps/,$d'
$explain >explained
grep -q "^hello from an image$" said
grep -q "its memory (512 MiB) was full" explained
# On cgroup v2 the whole sliver ended, and is started again.
for _ in $(seq 60); do
  if in_node true 2>/dev/null; then break; fi
  sleep 1
done
printf '\nWhat else runs containers in that sliver:\n'
in_node sh -s </opt/first-job/engines.sh

# Two jobs, of which the second one finds what the first has compiled.
cp /opt/first-job/cached.sh .
type "cat cached.sh"
cached() {
  type "nodeyard --state /var/lib/nodeyard request cached --wait --project job" | tee request
  read -r job address <<LINE
$(sed -n 's/^  \([0-9]*\) .* ssh \(ny-.*\)$/\1 \2/p' request)
LINE
  printf '\n# ssh %s sh <cached.sh\n' "$address"
  into "$address" sh -s <cached.sh | tee said
  type "nodeyard --state /var/lib/nodeyard explain $job | grep \"its cache\""
  type "nodeyard --state /var/lib/nodeyard release $(sed -n 's/^lease \([^ ]*\) .*/\1/p' request) --commit"
  # From then on the next one finds it.
  while nodeyard --state /var/lib/nodeyard list | grep -q "$job"; do sleep 0.3; done
}
cached
grep -q "^direct_cache_hit.0$" said
cached
grep -q "^direct_cache_hit.7$" said

type "nodeyard --state /var/lib/nodeyard request promised --wait" | tee request
neighbour=$(sed -n 's/^  [0-9]* .* ssh \(ny-.*\)$/\1/p' request)
in_node sh -s </opt/first-job/busy.sh >/dev/null
# In turn without and with them, and the least disturbed of each: what else runs on the machine only takes.
alone=0 beside=0
compute() { into "$neighbour" sh -s </opt/first-job/compute.sh; }
larger() { if [ "$1" -gt "$2" ]; then echo "$1"; else echo "$2"; fi; }
for _ in 1 2 3 4; do
  nodeyard --state /var/lib/nodeyard sliverd freeze "$node" >/dev/null
  alone=$(larger "$alone" "$(compute)")
  nodeyard --state /var/lib/nodeyard sliverd thaw "$node" >/dev/null
  beside=$(larger "$beside" "$(compute)")
done
printf '\nBeside containers that fork, write and fill their memory it computes %s %% of what it does alone.\n' $((100 * beside / alone))
[ $((100 * beside)) -ge $((95 * alone)) ]
echo "all of it happened"
