#!/usr/bin/env bash
# Prints the folder of a virtual environment with the real Nodepool, and makes it on first use: outside of the repository, one for each
# content of requirements.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodeyard
place=$cache/nodepool-$(sha256sum requirements.txt | cut -c1-12)
if [[ ! -e $place/complete ]]; then
  mkdir -p "$cache"
  exec 9>"$cache/nodepool.lock"
  # Several suites begin at once; one of them installs.
  flock 9
  if [[ ! -e $place/complete ]]; then
    python3 -m venv --clear "$place" >&2 ||
      { echo "testing/nodepool needs python3 >= 3.10 with venv. Run: apt-get install python3-venv" >&2; exit 1; }
    # Few of the thousands of files are read, so nothing is compiled beforehand.
    "$place/bin/pip" install --quiet --disable-pip-version-check --no-compile --requirement requirements.txt >&2 ||
      { echo "testing/nodepool: pip cannot install $(grep -v '^#' requirements.txt | xargs); see its message above" >&2; exit 1; }
    touch "$place/complete"
  fi
fi
echo "$place"
