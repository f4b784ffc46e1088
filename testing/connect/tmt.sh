#!/usr/bin/env bash
# Prints the program tmt of PyPI, and installs it on first use: outside of the repository, one for each version.
set -euo pipefail
VERSION=${TMT_VERSION:-1.78.0}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodeyard
place=$cache/tmt-$VERSION
if [[ ! -e $place/complete ]]; then
  mkdir -p "$cache"
  exec 9>"$cache/tmt.lock"
  # Two at once install once.
  flock 9
  if [[ ! -e $place/complete ]]; then
    python3 -m venv --clear "$place" >&2 ||
      { echo "tests with tmt need python3 >= 3.9 with venv. Run: apt-get install python3-venv" >&2; exit 1; }
    "$place/bin/pip" install --quiet --disable-pip-version-check --no-compile "tmt==$VERSION" >&2
    touch "$place/complete"
  fi
fi
echo "$place/bin/tmt"
