#!/usr/bin/env bash
# Makes what the suite `connect` needs, once: before the tests, whose limits of time are not made for it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/boskos.sh"
"$here/tmt.sh" >/dev/null
