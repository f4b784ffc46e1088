#!/usr/bin/env bash
# Prints the Python that has moto, and makes it on first use: a virtual environment outside of the repository, one for each content of
# requirements.txt, so that an update never changes one that is in use.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodeyard
place=$cache/moto-$(sha256sum requirements.txt | cut -c1-12)
if [[ ! -e $place/complete ]]; then
  mkdir -p "$cache"
  exec 9>"$cache/moto.lock"
  # Several suites begin at once; one of them installs.
  flock 9
  if [[ ! -e $place/complete ]]; then
    python3 -m venv --clear "$place" >&2 ||
      { echo "testing/aws needs python3 >= 3.10 with venv. Run: apt-get install python3-venv" >&2; exit 1; }
    "$place/bin/pip" install --quiet --disable-pip-version-check --requirement requirements.txt >&2 ||
      { echo "testing/aws: pip cannot install $(grep -v '^#' requirements.txt | xargs); see its message above" >&2; exit 1; }
    touch "$place/complete"
  fi
fi
echo "$place/bin/python"
