#!/usr/bin/env bash
# Prints the folder of a virtual environment with the real Zuul, and makes it on first use: outside of the repository, one for each content
# of requirements.txt. zuul-manage-ansible would install two versions of the ansible package with the SDKs of all clouds, a quarter of an hour's
# work. The executor and its plugins need ansible-core and two packages of those, which stand here under both versions that it checks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodeyard
place=$cache/zuul-$(cat requirements.txt install.sh | sha256sum | cut -c1-12)
if [[ ! -e $place/complete ]]; then
  mkdir -p "$cache"
  exec 9>"$cache/zuul.lock"
  # Several suites begin at once; one of them installs.
  flock 9
  if [[ ! -e $place/complete ]]; then
    python3 -m venv --clear "$place" >&2 ||
      { echo "testing/zuul needs python3 >= 3.11 with venv. Run: apt-get install python3-venv" >&2; exit 1; }
    # Few of the thousands of files are read, so nothing is compiled beforehand.
    "$place/bin/pip" install --quiet --disable-pip-version-check --no-compile --requirement requirements.txt >&2
    "$place/bin/python" -m venv "$place/ansible/11"
    "$place/ansible/11/bin/pip" install --quiet --disable-pip-version-check --no-compile 'ansible-core>=2.18,<2.19' google-re2 voluptuous >&2
    ln -s 11 "$place/ansible/9"
    touch "$place/complete"
  fi
fi
echo "$place"
