"""IBM's own clients for Python (ibm-vpc, ibm-cos-sdk) against the double: what they send is taken, and what they get they can read."""

import io
import sys
import time

import ibm_boto3
import ibm_vpc.vpc_v1 as vpc_v1
from ibm_boto3.s3.transfer import TransferConfig
from ibm_botocore.client import Config
from ibm_cloud_sdk_core import ApiException
from ibm_cloud_sdk_core.authenticators import IAMAuthenticator

BASE = sys.argv[1]
KEY = "api-key-of-the-double-of-ibm"
vpc = vpc_v1.VpcV1(authenticator=IAMAuthenticator(KEY, url=BASE))
vpc.set_service_url(f"{BASE}/v1")


def all_of(pager, model):
    """Every page, read by the SDK's own model."""
    return [model.from_dict(one) for one in pager.get_all()]


def until(read, status):
    limit = time.monotonic() + 60
    while (now := read()).status != status:
        assert time.monotonic() < limit, f"stays {now.status}"
        time.sleep(0.3)
    return now


(network,) = [one for one in all_of(vpc_v1.VpcsPager(client=vpc), vpc_v1.VPC) if one.name == "nodepool"]
(subnet,) = [one for one in all_of(vpc_v1.SubnetsPager(client=vpc), vpc_v1.Subnet) if one.name == "sn-nodepool"]
keys = all_of(vpc_v1.KeysPager(client=vpc), vpc_v1.Key)
image = all_of(vpc_v1.ImagesPager(client=vpc, name="ibm-debian-13-1-minimal-amd64-1"), vpc_v1.Image)[0]
profile = vpc_v1.InstanceProfile.from_dict(vpc.get_instance_profile("bx2-2x8").get_result())
assert (profile.vcpu_count["value"], profile.memory["value"]) == (2, 8)


def launched(name, size="bx2-2x8"):
    prototype = vpc_v1.InstancePrototypeInstanceByImageInstanceByImageInstanceByNetworkInterface(
        name=name,
        image=vpc_v1.ImageIdentityById(id=image.id),
        zone=vpc_v1.ZoneIdentityByName(name="us-south-1"),
        profile=vpc_v1.InstanceProfileIdentityByName(name=size),
        vpc=vpc_v1.VPCIdentityById(id=network.id),
        keys=[vpc_v1.KeyIdentityById(id=keys[0].id)],
        primary_network_interface=vpc_v1.NetworkInterfacePrototype(subnet=vpc_v1.SubnetIdentityById(id=subnet.id)),
        availability=vpc_v1.InstanceAvailabilityPrototype(class_="spot"),
    )
    return vpc_v1.Instance.from_dict(vpc.create_instance(prototype).get_result())


def read(machine):
    return vpc_v1.Instance.from_dict(vpc.get_instance(machine.id).get_result())


machine = until(lambda one=launched("sdk-1"): read(one), "running")
assert machine.availability.class_ == "spot", machine
try:
    launched("sdk-1")
    raise AssertionError("two machines have one name")
except ApiException as error:
    assert error.status_code == 400, error
prototype = vpc_v1.FloatingIPPrototypeFloatingIPByTarget(
    name="sdk-ip", target=vpc_v1.FloatingIPTargetPrototypeNetworkInterfaceIdentityNetworkInterfaceIdentityById(id=machine.primary_network_interface.id)
)
address = vpc_v1.FloatingIP.from_dict(vpc.create_floating_ip(prototype).get_result())
assert address.target["id"] == machine.primary_network_interface.id
vpc.update_floating_ip(address.id, {"name": "renamed"})
(found,) = all_of(vpc_v1.FloatingIpsPager(client=vpc), vpc_v1.FloatingIP)
assert found.name == "renamed"
volumes = all_of(vpc_v1.VolumesPager(client=vpc), vpc_v1.Volume)
assert [one.volume_attachments[0].instance.id for one in volumes] == [machine.id]
full = until(lambda one=launched("sdk-2", "bx2-4x16"): read(one), "failed")
assert full.status_reasons[0].code == "cannot_start_capacity", full.status_reasons
for one in all_of(vpc_v1.InstancesPager(client=vpc), vpc_v1.Instance):
    vpc.delete_instance(one.id)
limit = time.monotonic() + 60
while all_of(vpc_v1.InstancesPager(client=vpc), vpc_v1.Instance):
    assert time.monotonic() < limit
    time.sleep(0.3)
assert vpc.get_floating_ip(address.id).get_result().get("target") is None
vpc.delete_floating_ip(address.id)
bucket = ibm_boto3.client(
    "s3",
    ibm_api_key_id=KEY,
    ibm_service_instance_id="crn:v1:bluemix:public:cloud-object-storage:global:a/1:1::",
    ibm_auth_endpoint=f"{BASE}/identity/token",
    config=Config(signature_version="oauth", s3={"addressing_style": "path"}),
    endpoint_url=BASE,
)
parts = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
bucket.upload_fileobj(io.BytesIO(b"x" * (12 << 20)), "ci-images", "sdk.qcow2", Config=parts)
assert [one["Key"] for one in bucket.list_objects_v2(Bucket="ci-images")["Contents"]] == ["sdk.qcow2"]
prototype = {"name": "sdk-image", "file": {"href": "cos://us-south/ci-images/sdk.qcow2"}, "operating_system": {"name": "debian-13-amd64"}}
uploaded = vpc_v1.Image.from_dict(vpc.create_image(prototype).get_result())
until(lambda: vpc_v1.Image.from_dict(vpc.get_image(uploaded.id).get_result()), "available")
vpc.delete_image(uploaded.id)
bucket.delete_object(Bucket="ci-images", Key="sdk.qcow2")
print("served 2 machines, an address and an image")
