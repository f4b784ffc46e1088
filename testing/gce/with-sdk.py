"""Google's own clients for Python (google-cloud-compute, google-cloud-storage) against the double: what it sends is taken, and what it gets it can read."""

import sys
import tempfile
import uuid

from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import NotFound
from google.auth.credentials import Credentials
from google.cloud import compute_v1, storage
from google.cloud.storage import transfer_manager


class Given(Credentials):
    """A token that needs no login."""

    def __init__(self):
        super().__init__()
        self.token = "ya29.sdk"

    @property
    def valid(self):
        return True

    def refresh(self, request):
        pass


options = {"credentials": Given(), "transport": "rest", "client_options": ClientOptions(api_endpoint=sys.argv[1])}
PROJECT, ZONE = "ci-project-1", "us-central1-a"
instances = compute_v1.InstancesClient(**options)
operations = compute_v1.ZoneOperationsClient(**options)


def body(name, machine_type="e2-standard-4"):
    return compute_v1.Instance(
        name=name,
        machine_type=f"zones/{ZONE}/machineTypes/{machine_type}",
        labels={"owner": "sdk"},
        disks=[
            compute_v1.AttachedDisk(
                boot=True,
                auto_delete=True,
                initialize_params=compute_v1.AttachedDiskInitializeParams(
                    source_image="projects/debian-cloud/global/images/family/debian-12", disk_size_gb=20
                ),
            )
        ],
        network_interfaces=[compute_v1.NetworkInterface(network="global/networks/default")],
        scheduling=compute_v1.Scheduling(provisioning_model="SPOT", instance_termination_action="DELETE"),
    )


def ended(operation):
    """The SDK's own futures ask at Google's address, whatever the client's is."""
    return operations.wait(project=PROJECT, zone=ZONE, operation=operation.name)


token = str(uuid.uuid4())
request = compute_v1.InsertInstanceRequest(project=PROJECT, zone=ZONE, instance_resource=body("vm-1"), request_id=token)
first = instances.insert_unary(request)
assert instances.insert_unary(request).name == first.name, "a repeated request makes nothing"
done = ended(first)
assert done.status == compute_v1.Operation.Status.DONE, done
found = instances.get(project=PROJECT, zone=ZONE, instance="vm-1")
assert (found.status, found.labels["owner"]) == ("RUNNING", "sdk"), found
for number in range(2, 5):
    ended(instances.insert_unary(project=PROJECT, zone=ZONE, instance_resource=body(f"vm-{number}", "f1-micro")))
listed = instances.aggregated_list(compute_v1.AggregatedListInstancesRequest(project=PROJECT, max_results=2))
names = sorted(one.name for _, scope in listed for one in scope.instances)
assert names == ["vm-1", "vm-2", "vm-3", "vm-4"], names
few = instances.list(compute_v1.ListInstancesRequest(project=PROJECT, zone=ZONE, filter="labels.owner = sdk", max_results=1))
assert len(list(few)) == 4
assert "login:" in instances.get_serial_port_output(project=PROJECT, zone=ZONE, instance="vm-1").contents
region = compute_v1.RegionsClient(**options).get(project=PROJECT, region="us-central1")
assert {quota.metric: quota.usage for quota in region.quotas}["INSTANCES"] == 4
disks = compute_v1.DisksClient(**options).aggregated_list(project=PROJECT)
assert len([disk for _, scope in disks for disk in scope.disks]) == 4
assert compute_v1.MachineTypesClient(**options).get(project=PROJECT, zone=ZONE, machine_type="f1-micro").guest_cpus == 1
for number in range(1, 5):
    ended(instances.delete_unary(project=PROJECT, zone=ZONE, instance=f"vm-{number}"))
try:
    instances.get(project=PROJECT, zone=ZONE, instance="vm-1")
    raise AssertionError("vm-1 is still there")
except NotFound:
    pass
full = ended(instances.insert_unary(project=PROJECT, zone=ZONE, instance_resource=body("vm-9", "n2-standard-8")))
(error,) = full.error.errors
assert error.code == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", full
# Uploads in parts, by the XML API. Google's client sends 16 MiB and a rest at the same time.
bucket = storage.Client(
    project=PROJECT, credentials=Given(), client_options=ClientOptions(api_endpoint=sys.argv[1])
).bucket("ci-images")
with tempfile.NamedTemporaryFile() as file:
    file.write(b"disk" * (5 << 20))
    file.flush()
    transfer_manager.upload_chunks_concurrently(
        file.name,
        bucket.blob("sdk.tar.gz"),
        chunk_size=16 << 20,
        max_workers=2,
        worker_type=transfer_manager.THREAD,
        checksum="md5",
    )
image = compute_v1.Image(
    name="sdk", raw_disk={"source": "https://storage.googleapis.com/ci-images/sdk.tar.gz", "container_type": "TAR"}
)
made = compute_v1.ImagesClient(**options).insert_unary(project=PROJECT, image_resource=image)
made = compute_v1.GlobalOperationsClient(**options).wait(project=PROJECT, operation=made.name)
assert not made.error.errors, made
print("served", len(names), "machines and an upload")
