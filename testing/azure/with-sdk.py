"""Microsoft's own clients for Python (azure-mgmt-compute, azure-mgmt-network) against the double: what they send is taken, and what they get they can read."""

import base64
import json
import sys
import time
import urllib.parse
import urllib.request

from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient

place = json.loads(sys.argv[1])
URL, GROUP = place["url"], "nodes"


class Login:
    """A client secret, without azure-identity, which takes only servers of TLS."""

    def get_token(self, *scopes, **_):
        form = {"grant_type": "client_credentials", "client_id": "sdk", "client_secret": place["secret"], "scope": " ".join(scopes)}
        data = urllib.parse.urlencode(form).encode()
        with urllib.request.urlopen(f"{URL}/{place['tenant']}/oauth2/v2.0/token", data) as answer:
            said = json.load(answer)
        return AccessToken(said["access_token"], int(time.time()) + said["expires_in"])


class Plain(SansIOHTTPPolicy):
    """The token may go to a loopback address without TLS."""

    def on_request(self, request):
        request.context.options["enforce_https"] = False


options = {
    **{"credential": Login(), "subscription_id": place["subscription"], "base_url": URL, "polling_interval": 1},
    **{"credential_scopes": ["https://management.azure.com/.default"], "per_call_policies": [Plain()]},
}
compute, network = ComputeManagementClient(**options), NetworkManagementClient(**options)
SUBNET = f"/subscriptions/{place['subscription']}/resourceGroups/{GROUP}/providers/Microsoft.Network/virtualNetworks/nodes/subnets/default"
assert network.subnets.get(GROUP, "nodes", "default").id == SUBNET


def body(name, size="Standard_D2s_v5"):
    address = {"name": f"{name}-ip", "sku": {"name": "Standard"}, "properties": {"deleteOption": "Delete", "publicIPAllocationMethod": "Static"}}
    ip = {"name": "v4", "properties": {"primary": True, "subnet": {"id": SUBNET}, "publicIPAddressConfiguration": address}}
    nic = {"name": f"{name}-nic", "properties": {"primary": True, "deleteOption": "Delete", "ipConfigurations": [ip]}}
    image = {"publisher": "Debian", "offer": "debian-12", "sku": "12-gen2", "version": "latest"}
    return {
        "location": "westeurope",
        "tags": {"owner": "sdk"},
        "properties": {
            "hardwareProfile": {"vmSize": size},
            "osProfile": {
                **{"computerName": name, "adminUsername": "ci", "adminPassword": "Not-a-secret-1"},
                "customData": base64.b64encode(b"#!/bin/sh").decode(),
            },
            "storageProfile": {"imageReference": image, "osDisk": {"createOption": "FromImage", "deleteOption": "Delete"}},
            "networkProfile": {"networkApiVersion": "2024-07-01", "networkInterfaceConfigurations": [nic]},
        },
    }


machines = compute.virtual_machines
first = machines.begin_create_or_update(GROUP, "vm-1", body("vm-1")).result()
assert (first.provisioning_state, first.tags) == ("Succeeded", {"owner": "sdk"}), first
for number in range(2, 5):
    machines.begin_create_or_update(GROUP, f"vm-{number}", body(f"vm-{number}")).result()
names = sorted(one.name for one in machines.list(GROUP))
assert names == ["vm-1", "vm-2", "vm-3", "vm-4"], names
view = machines.get(GROUP, "vm-1", expand="instanceView").instance_view
assert "PowerState/running" in [status.code for status in view.statuses], view
nic = network.network_interfaces.get(GROUP, first.network_profile.network_interfaces[0].id.rsplit("/", 1)[1])
(ip,) = nic.ip_configurations
assert ip.private_ip_address and nic.virtual_machine.id.lower() == first.id.lower(), nic
address = network.public_ip_addresses.get(GROUP, ip.public_ip_address.id.rsplit("/", 1)[1])
assert address.ip_address and address.public_ip_address_version == "IPv4", address
assert len(list(compute.disks.list_by_resource_group(GROUP))) == 4
usages = {one.name.value: (one.current_value, one.limit) for one in compute.usage.list("westeurope")}
assert usages["standardDSv5Family"] == (8, 200), usages
sizes = {one.name: {each.name: each.value for each in one.capabilities} for one in compute.resource_skus.list()}
assert sizes["Standard_D2s_v5"]["vCPUs"] == "2", sizes
for number in range(1, 5):
    machines.begin_delete(GROUP, f"vm-{number}").result()
try:
    machines.get(GROUP, "vm-1")
    raise AssertionError("vm-1 is still there")
except ResourceNotFoundError:
    pass
left = [*compute.disks.list_by_resource_group(GROUP), *network.network_interfaces.list(GROUP), *network.public_ip_addresses.list(GROUP)]
assert left == [], left
try:
    machines.begin_create_or_update(GROUP, "vm-9", body("vm-9", "Standard_D4s_v5")).result()
    raise AssertionError("there was room")
except HttpResponseError as error:
    assert error.error.code in ("AllocationFailed", "ZonalAllocationFailed", "SkuNotAvailable"), error
print("served", len(names), "machines")
