"""The gce driver of the real Nodepool against the double: quotas, and a node that is launched, listed and deleted. `python.sh` runs it."""

import logging
import sys
import tempfile
import time

import googleapiclient.discovery
import httplib2
from google.api_core.client_options import ClientOptions

BASE = sys.argv[1]
build = googleapiclient.discovery.build


def at_the_double(name, version):
    """With the address of the double, and a token that needs no login: the rest is Nodepool's own."""
    http = httplib2.Http()
    request = http.request

    def authorized(uri, method="GET", body=None, headers=None, **more):
        return request(uri, method, body, {**(headers or {}), "authorization": "Bearer ya29.nodepool"}, **more)

    http.request = authorized
    return build(name, version, http=http, client_options=ClientOptions(api_endpoint=f"{BASE}/compute/v1/"), static_discovery=True)


googleapiclient.discovery.build = at_the_double

from nodepool.config import loadConfig  # noqa: E402
from nodepool.driver import Drivers  # noqa: E402
from nodepool.driver.gce.adapter import GceAdapter  # noqa: E402


def advanced(machine):
    limit = time.monotonic() + 120
    while not machine.complete:
        assert time.monotonic() < limit, f"stays {machine.state}"
        result = machine.advance()
        time.sleep(0.5)
    return result


file = tempfile.NamedTemporaryFile("w", suffix=".yaml")
file.write("""
labels: [{name: small}]
providers:
  - name: gcp
    driver: gce
    project: ci-project-1
    region: us-central1
    zone: us-central1-a
    cloud-images: [{name: debian, image-project: debian-cloud, image-family: debian-12, username: ci, key: ssh-ed25519 AAAA}]
    pools:
      - name: main
        labels: [{name: small, cloud-image: debian, instance-type: n1-standard-2}]
""")
file.flush()
Drivers.load()
provider = loadConfig(file.name).providers["gcp"]
adapter = GceAdapter(provider)
log = logging.getLogger("python")
label = provider.pools["main"].labels["small"]
tags = {"nodepool_node_id": "0000000001", "nodepool_pool_name": "main", "nodepool_provider_name": "gcp"}
print("quota", adapter.getQuotaLimits(), adapter.getQuotaForLabel(label))
create = adapter.getCreateStateMachine("np0000000001", label, None, tags, None, None, log)
instance = advanced(create)
print("launched", create.external_id, instance.private_ipv4, instance.az)
time.sleep(11)  # Its lists are kept for ten seconds.
listed = [one.metadata.get("nodepool_node_id") for one in adapter.listInstances()]
assert listed == ["0000000001"], listed
advanced(adapter.getDeleteStateMachine(create.external_id, log))
print("deleted")
