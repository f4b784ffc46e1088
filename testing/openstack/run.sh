#!/bin/sh
# The suites that need an OpenStack: brings a real control plane up, runs them and takes it down. Guests are addresses
# of a network namespace of the run, with an sshd behind them; a part of the range leads nowhere, for boots that never answer.
# Root, or a user who may become root with sudo. Arguments go to vitest.
set -eu
cd "$(dirname "$0")/../.."
if [ "${1:-}" != inside ]; then
  [ "$(id -u)" = 0 ] || exec sudo -n env "PATH=$PATH" "CI=${CI:-}" "NODEYARD_OPENSTACK_DIR=${NODEYARD_OPENSTACK_DIR:-}" "$0" "$@"
  if [ -z "${NODEYARD_OPENSTACK_DIR:-}" ]; then
    export NODEYARD_OPENSTACK_WIPE=--wipe
    NODEYARD_OPENSTACK_DIR=$(mktemp -d)/state
    export NODEYARD_OPENSTACK_DIR
  fi
  NODEYARD_OPENSTACK_INSTALL=only testing/openstack/up.sh
  exec unshare --net "$0" inside "$@"
fi
shift
ip link set lo up
# TEST-NET-2 of the floating addresses, and the fixed ones of the project's network.
ip route add local 198.51.100.0/24 dev lo
ip route add local 10.20.0.0/20 dev lo
# Whoever asks there never hears anything: neutron gives addresses out at random within the first thousand.
ip link add nowhere type veth peer name void
ip link set nowhere arp off up
ip link set void up
ip route add unicast 10.20.1.0/27 dev nowhere table local
ip route add unicast 10.21.0.0/24 dev nowhere table local
trap 'testing/openstack/down.sh ${NODEYARD_OPENSTACK_WIPE:-}' EXIT
trap 'exit 130' HUP INT TERM
NODEYARD_OPENSTACK_VERIFY=0 testing/openstack/up.sh
export NODEYARD_OPENSTACK_UP=1
node tools/run.mjs node_modules/vitest/vitest.mjs run --config testing/openstack/vitest-config.ts "$@"
