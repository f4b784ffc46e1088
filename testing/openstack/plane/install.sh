# Sourced by up.sh: Debian's packages, of which nothing starts by itself.
PKGS="python3-keystone python3-glance python3-placement python3-nova python3-neutron python3-cinder
python3-openstackclient python3-openstacksdk rabbitmq-server mariadb-server-core
uwsgi-core uwsgi-plugin-python3"
missing=
for p in $PKGS; do
  [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null || :)" = "ii " ] || missing="$missing $p"
done
if [ -n "$missing" ]; then
  say "installing:$missing"
  [ "$(id -u)" = 0 ] || die "not root, and these packages are missing:$missing"
  made=
  if [ ! -e /usr/sbin/policy-rc.d ]; then        # nothing may start by itself
    printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d; made=1
  fi
  apt_get() { apt-get -y -q -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold -o Dpkg::Options::=--force-unsafe-io "$@"; }
  apt_get install --no-install-recommends $missing >"$S/log/apt.log" 2>&1 ||
    { apt_get update >>"$S/log/apt.log" 2>&1 &&
      apt_get install --no-install-recommends $missing >>"$S/log/apt.log" 2>&1; } ||
    { [ -z "$made" ] || rm -f /usr/sbin/policy-rc.d; tail -5 "$S/log/apt.log" >&2; die "apt-get install"; }
  [ -z "$made" ] || rm -f /usr/sbin/policy-rc.d
  say "packages installed"
fi

