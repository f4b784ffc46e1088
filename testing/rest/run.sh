#!/usr/bin/env bash
# Calls REST v1 of a real process as its OpenAPI document allows, and as it does not: schemathesis (from PyPI) makes the
# calls, and checks that nothing fails with 5xx and that every status and body is documented. Once as an admin, to whom
# all routes are open, and once as a user of one tenant, to whom no word of another tenant may be shown.
#
#   testing/rest/run.sh [EXAMPLES] [options of schemathesis]
#
# EXAMPLES: calls per operation and phase, at most; 100 of them are some thousands of calls.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
config=$PWD/testing/rest/schemathesis.toml
examples=${1:-20}
shift || true
[[ "$examples" =~ ^[0-9]+$ ]] || { echo "EXAMPLES: $examples is not a number"; exit 2; }

folder=$(mktemp -d)
trap 'kill "${up:-}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
venv=${SCHEMATHESIS_VENV:-$folder/venv}
[[ -x "$venv/bin/st" ]] || { python3 -m venv "$venv"; "$venv/bin/pip" install --quiet 'schemathesis>=4.32,<5'; }

cat >"$folder/nodepool.yaml" <<'YAML'
labels: [{name: small}, {name: large}]
providers:
  - name: fake-cloud
    driver: fake
    cloud: memory
    fake: {latency: {}}
    cloud-images: [{name: debian, username: zuul}]
    pools:
      - name: main
        max-servers: 5
        labels:
          - {name: small, cloud-image: debian, min-ram: 1024}
          - {name: large, cloud-image: debian, min-ram: 1024}
YAML
nodeyard() { node tools/run.mjs packages/nodeyard/cli/src/bin/nodeyard.ts --state "$folder/state" "$@"; }
nodeyard -c "$folder/nodepool.yaml" up --webapp 127.0.0.1:0 >"$folder/log" 2>&1 &
up=$!
until grep -q 'Nodeyard is up' "$folder/log"; do
  kill -0 "$up" || { cat "$folder/log"; exit 1; }
  sleep 0.2
done
url=$(grep -o 'http://127[^" ]*' "$folder/log" | head -1)
token() { nodeyard token create "$@" 2>/dev/null; }
admin=$(token root --role admin)
blue=$(token blue --role user --label '*' --tenant blue)

# What the user of the tenant blue must never be shown; it is in names, owners, labels and keys.
curl -fsS "$url/v1/leases" -H "Authorization: Bearer $admin" -H 'Content-Type: application/json' \
  -d '{"labels": ["red-word"], "tenant": "red-word"}' >/dev/null

failed=0
check() (
  name=$1 token=$2 ended=0
  shift 2
  # The stream of events has no end, and so is no answer that schemathesis could wait for. It would revoke its own token,
  # whose name it reads in the list. That a cursor or a scope makes no sense is in no schema, so that what is valid by
  # the schema may be refused with 400. A lease is ended by POST, which schemathesis takes for no end.
  cd "$folder" # where it keeps what it found
  "$venv/bin/st" --config-file "$config" run "$url/v1/openapi.json" --header "Authorization: Bearer $token" --exclude-path /v1/events \
    --exclude-operation-id revoke_token --exclude-checks positive_data_acceptance,ensure_resource_availability \
    --max-examples "$examples" --rate-limit auto --request-timeout 20 --no-shrink --continue-on-failure \
    --report vcr --report-vcr-path "$folder/$name.yaml" --warnings off "$@" || ended=1
  echo "$name: $(grep -c '^- id:' "$folder/$name.yaml") calls, statuses: $(
    awk '/^  response:/ {r = 1} r && / code:/ {gsub(/[^0-9]/, ""); n[$0]++; r = 0}
      END {for (code in n) printf "%s: %d  ", code, n[code]}' "$folder/$name.yaml"
  )"
  exit "$ended"
)
check admin "$admin" "$@" || failed=1
check blue "$blue" "$@" || failed=1
kill -0 "$up" || { echo "the process has ended:"; tail -20 "$folder/log"; failed=1; }
if sed -n '/^  response:/,/^- id:/p' "$folder/blue.yaml" | grep -m3 -n 'red-word'; then
  echo "the user of one tenant was shown a word of another"
  failed=1
fi
grep -m5 'failed to answer an HTTP request' "$folder/log" && failed=1
exit "$failed"
