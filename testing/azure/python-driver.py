"""The azure driver of the real Nodepool against the double: quotas, an image, and a node that is launched, listed and deleted. `python.sh` runs it."""

import json
import logging
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import requests

place = json.loads(sys.argv[1])
send = requests.Session.send


def to_the_double(session, request, **more):
    """Its addresses are constants: those of Microsoft's servers become the double's, and nothing else of a request is changed."""
    url = urlsplit(request.url)
    if url.hostname in ("management.azure.com", "login.microsoftonline.com"):
        double = urlsplit(place["url"])
        request.url = urlunsplit((double.scheme, double.netloc, url.path, url.query, ""))
    return send(session, request, **more)


requests.Session.send = to_the_double

from nodepool.config import loadConfig  # noqa: E402
from nodepool.driver import Drivers  # noqa: E402
from nodepool.driver.azure.adapter import AzureAdapter, AzureResource  # noqa: E402


def advanced(machine):
    limit = time.monotonic() + 120
    while not machine.complete:
        assert time.monotonic() < limit, f"stays {machine.state}"
        result = machine.advance()
        time.sleep(0.5)
    return result


folder = tempfile.TemporaryDirectory()
login = Path(folder.name, "login.json")
names = {"tenantId": place["tenant"], "clientId": "nodepool", "clientSecret": place["secret"], "subscriptionId": place["subscription"]}
login.write_text(json.dumps(names))
config = Path(folder.name, "nodepool.yaml")
config.write_text(f"""
labels: [{{name: small}}]
providers:
  - name: azure
    driver: azure
    resource-group: nodes
    location: westeurope
    resource-group-location: westeurope
    auth-path: {login}
    network: nodes
    cloud-images:
      - name: debian
        username: ci
        key: ssh-ed25519 AAAA
        image-reference: {{publisher: Debian, offer: debian-12, sku: 12-gen2, version: latest}}
    diskimages: [{{name: built, username: ci}}]
    pools:
      - name: main
        max-servers: 10
        public-ipv4: true
        labels: [{{name: small, cloud-image: debian, hardware-profile: {{vm-size: Standard_D2s_v5}}}}]
diskimages: [{{name: built}}]
""")
Drivers.load()
provider = loadConfig(str(config)).providers["azure"]
adapter = AzureAdapter(provider)
log = logging.getLogger("python")
label = provider.pools["main"].labels["small"]
tags = {"nodepool_node_id": "0000000001", "nodepool_pool_name": "main", "nodepool_provider_name": "azure"}
print("quota", adapter.getQuotaLimits(), adapter.getQuotaForLabel(label))
create = adapter.getCreateStateMachine("np0000000001", label, None, tags, None, None, log)
instance = advanced(create)
print("launched", create.external_id, instance.private_ipv4, instance.public_ipv4)
time.sleep(11)  # Its lists are kept for ten seconds.
listed = [one.metadata.get("nodepool_node_id") for one in adapter.listInstances()]
assert listed == ["0000000001"], listed
advanced(adapter.getDeleteStateMachine(create.external_id, log))
image = Path(folder.name, "built.vhd")
image.write_bytes(bytes(4 << 20) + b"conectix".ljust(512, b"\0"))
name = adapter.uploadImage(provider.diskimages["built"], "built-1", str(image), "vhd", tags, None, None)
time.sleep(11)
# It reports uploads that failed as done.
left = [(one.type, one.name) for one in adapter.listResources()]
assert left == [(AzureResource.TYPE_IMAGE, name)], left
adapter.deleteImage(name)
print("uploaded and deleted", name)
