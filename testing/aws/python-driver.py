"""The AWS driver of the real Nodepool against the double: launches, lists and deletes a node. `python.sh` runs it."""

import json
import logging
import os
import sys
import tempfile
import time
import urllib.request

from nodepool.config import loadConfig
from nodepool.driver import Drivers
from nodepool.driver.aws.adapter import AwsAdapter

BASE = f"http://127.0.0.1:{sys.argv[1]}"
os.environ.update(AWS_ENDPOINT_URL=BASE, AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing")


def control(method, path, body):
    request = urllib.request.Request(f"{BASE}/_nodeyard{path}", json.dumps(body).encode(), method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def advanced(machine):
    limit = time.monotonic() + 120
    while not machine.complete:
        assert time.monotonic() < limit, f"stays {machine.state}"
        result = machine.advance()
        time.sleep(0.2)
    return result


site = control("POST", "/site", {"region": "us-west-2"})
file = tempfile.NamedTemporaryFile("w", suffix=".yaml")
file.write(f"""
labels: [{{name: small}}]
providers:
  - name: ec2
    driver: aws
    region-name: us-west-2
    cloud-images: [{{name: ubuntu, image-id: {site["images"][0]}, username: ubuntu}}]
    pools:
      - name: main
        subnet-id: {list(site["subnets"].values())[0]}
        security-group-id: {site["securityGroup"]}
        labels: [{{name: small, cloud-image: ubuntu, instance-type: t3.medium, key-name: {site["key"]}}}]
""")
file.flush()
Drivers.load()
provider = loadConfig(file.name).providers["ec2"]
adapter = AwsAdapter(provider)
log = logging.getLogger("python")
label = provider.pools["main"].labels["small"]
tags = {
    "nodepool_node_id": "0000000001",
    "nodepool_pool_name": "main",
    "nodepool_provider_name": "ec2",
}
print("quota", adapter.getQuotaLimits(), adapter.getQuotaForLabel(label))
create = adapter.getCreateStateMachine("np0000000001", label, None, tags, None, None, log)
instance = advanced(create)
print("launched", create.external_id, instance.private_ipv4, instance.az)
listed = [one.metadata.get("nodepool_node_id") for one in adapter.listInstances()]
assert listed == ["0000000001"], listed
print("listed", listed, sorted({one.type for one in adapter.listResources()}))
advanced(adapter.getDeleteStateMachine(create.external_id, log))
left = list(adapter.listInstances())
assert left == [], left
print("deleted")
adapter.stop()
