"""The ibmvpc driver of the real Nodepool against the double: a node with an address and an image. `python.sh` runs it."""

import functools
import logging
import re
import sys
import tempfile
import time

import ibm_boto3
import ibm_vpc
from ibm_cloud_sdk_core import BaseService

BASE = sys.argv[1]
at = BaseService.set_service_url
# All services are at the double, and VPC in the version for which Nodepool's driver was written. The rest is Nodepool's own.
BaseService.set_service_url = lambda service, url: at(service, re.sub(r"^https://[^/]+", BASE, url))
ibm_vpc.VpcV1 = functools.partial(ibm_vpc.VpcV1, version="2022-03-01")
client = ibm_boto3.client
ibm_boto3.client = functools.partial(client, ibm_auth_endpoint=f"{BASE}/identity/token")

from nodepool.config import loadConfig  # noqa: E402
from nodepool.driver import Drivers  # noqa: E402
from nodepool.driver.ibmvpc.adapter import IBMVPCAdapter  # noqa: E402


def advanced(machine):
    limit = time.monotonic() + 120
    while not machine.complete:
        assert time.monotonic() < limit, f"stays {machine.state}"
        result = machine.advance()
        time.sleep(0.5)
    return result


credentials = tempfile.NamedTemporaryFile("w", suffix=".env")
credentials.write(f"VPC_AUTH_TYPE=iam\nVPC_APIKEY=api-key-of-the-double-of-ibm\nVPC_AUTH_URL={BASE}\n")
credentials.flush()
file = tempfile.NamedTemporaryFile("w", suffix=".yaml")
file.write(f"""
labels: [{{name: small}}]
diskimages: [{{name: built}}]
providers:
  - name: ibm
    driver: ibmvpc
    region: us-south
    vpc: nodepool
    rate: 100
    credentials-file: {credentials.name}
    object-storage: {{instance-name: storage, endpoint: "{BASE}", bucket-name: ci-images}}
    diskimages: [{{name: built, operating-system: debian-13-amd64}}]
    cloud-images: [{{name: debian, image-name: ibm-debian-13-1-minimal-amd64-1, username: ci, keys: [testuser]}}]
    pools:
      - name: main
        max-servers: 10
        zone: us-south-1
        subnet: sn-nodepool
        public-ipv4: true
        labels: [{{name: small, cloud-image: debian, profile: bx2-2x8}}]
""")
file.flush()
Drivers.load()
provider = loadConfig(file.name).providers["ibm"]
# The answer to the call that makes a resource group has no name (IBM's page of it), which Nodepool needs: only a second start works.
IBMVPCAdapter(provider)
adapter = IBMVPCAdapter(provider)
adapter.IMAGE_UPLOAD_SLEEP = 1
log = logging.getLogger("python")
label = provider.pools["main"].labels["small"]
create = adapter.getCreateStateMachine("np0000000001", label, None, {}, None, None, log)
instance = advanced(create)
print("launched", create.external_id, instance.public_ipv4, instance.private_ipv4, instance.az)
time.sleep(11)  # Its lists are kept for ten seconds.
listed = [one.metadata for one in adapter.listInstances()]
assert listed == [{"nodepool_node_id": "0000000001", "nodepool_provider_name": "ibm", "nodepool_pool_name": "main"}], listed
image = tempfile.NamedTemporaryFile(suffix=".qcow2")
image.write(b"x" * (1 << 20))
image.flush()
adapter._getResourceGroups()
print("uploaded", adapter.uploadImage(provider.diskimages["built"], "npimage0000000001", image.name, "qcow2", {}, None, None))
advanced(adapter.getDeleteStateMachine(create.external_id, log))
print("deleted")
