"""Images: registered with all that they say, copied, deprecated; imported by tasks; written block by block through EBS direct."""

import base64
import hashlib
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ebs.models import EBSBackend
from moto.ebs.responses import EBSResponse
from moto.ec2.exceptions import EC2ClientError, InvalidSnapshotIdError
from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.amis import Ami
from moto.ec2.responses import EC2Response
from moto.ec2.utils import convert_tag_spec
from moto.core.exceptions import ServiceException
from moto.s3.models import s3_backends
from settings import SETTINGS
from instances import TOKENS, later, replace, without_token

BLOCK = 512 * 1024


def make_image(backend: EC2Backend, name: str, mappings: list[dict[str, Any]], facts: dict[str, Any]) -> Ami:
    from moto.ec2.utils import random_ami_id

    image = Ami(backend, random_ami_id(), name=name, description=facts.pop("description", None), root_device_type="ebs")
    # moto invents a snapshot for each image.
    backend.snapshots.pop(image.ebs_snapshot.id, None)
    image.ny_mappings = mappings
    for key, value in facts.items():
        setattr(image, key, value)
    backend.amis[image.id] = image
    return image


def mapped(image: Ami) -> list[dict[str, Any]]:
    return [m for m in image.block_device_mappings if m.get("Ebs", {}).get("SnapshotId")]


def new_snapshot(backend: EC2Backend, size: int, description: str = "") -> Any:
    """A snapshot has a volume in moto; in EC2 the volume of an imported one does not exist."""
    volume = backend.create_volume(size=size, zone_name=f"{backend.region_name}a")
    snapshot = backend.create_snapshot(volume.id, description)
    backend.volumes.pop(volume.id, None)
    return snapshot


class Images:
    def register_image(self) -> ActionResult:
        name, backend = self._get_param("Name"), self.ec2_backend
        mappings = self._get_param("BlockDeviceMappings", [])
        for mapping in mappings:
            snapshot = backend.get_snapshot(mapping["Ebs"]["SnapshotId"])
            if snapshot.status != "completed":
                raise EC2ClientError("InvalidSnapshot.NotReady", f"snapshot {snapshot.id} is {snapshot.status}")
            ebs = mapping["Ebs"]
            if int(ebs.get("VolumeSize") or snapshot.volume_size) < snapshot.volume_size:
                raise EC2ClientError("InvalidBlockDeviceMapping", f"volume size {ebs['VolumeSize']} is smaller than {snapshot.id}")
            ebs.setdefault("VolumeSize", snapshot.volume_size)
            ebs.setdefault("Encrypted", False)
        if any(image.name == name and image.owner_id == backend.account_id for image in backend.amis.values()):
            raise EC2ClientError("InvalidAMIName.Duplicate", f"AMI name {name} is already in use by another AMI")
        image = make_image(
            backend,
            name,
            mappings,
            {
                "description": self._get_param("Description"),
                "architecture": self._get_param("Architecture", "i386"),
                "root_device_name": self._get_param("RootDeviceName"),
                "virtualization_type": self._get_param("VirtualizationType", "paravirtual"),
                "ena_support": self._get_param("EnaSupport"),
                "imds_support": self._get_param("ImdsSupport"),
                "boot_mode": self._get_param("BootMode"),
                "tpm_support": self._get_param("TpmSupport"),
            },
        )
        image.add_tags(self._parse_tag_specification().get("image", {}))
        return ActionResult({"ImageId": image.id})

    def copy_image(self) -> ActionResult:
        backend, source = self.ec2_backend, ec2_backends[self.current_account][self._get_param("SourceRegion")]

        def make() -> dict[str, Any]:
            of = source.describe_images(ami_ids=[self._get_param("SourceImageId")])[0]
            mappings = []
            for mapping in mapped(of):
                size = int(mapping["Ebs"].get("VolumeSize") or 8)
                snapshot = new_snapshot(backend, size, f"Copied for DestinationAmi from SourceAmi {of.id}")
                snapshot.add_tags(self._parse_tag_specification().get("snapshot", {}))
                mappings.append({**mapping, "Ebs": {**mapping["Ebs"], "SnapshotId": snapshot.id}})
            names = ("architecture", "root_device_name", "virtualization_type", "ena_support", "imds_support", "boot_mode")
            facts = {key: getattr(of, key, None) for key in names}
            image = make_image(backend, self._get_param("Name"), mappings, {**facts, "description": self._get_param("Description")})
            image.add_tags(self._parse_tag_specification().get("image", {}))
            if self._get_bool_param("CopyImageTags", False):
                image.add_tags({tag["key"]: tag["value"] for tag in of.get_tags()})
            image.state = "pending"
            later(SETTINGS.copyMs, lambda: setattr(image, "state", "available"))
            return {"ImageId": image.id}

        return ActionResult(TOKENS.once("CopyImage", self.region, self._get_param("ClientToken"), without_token(self), make))

    def enable_image_deprecation(self) -> ActionResult:
        image = self.ec2_backend.describe_images(ami_ids=[self._get_param("ImageId")])[0]
        at = self._get_param("DeprecateAt")
        image.deprecation_time = at if isinstance(at, str) else at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return ActionResult({"Return": True})

    def disable_image_deprecation(self) -> ActionResult:
        self.ec2_backend.describe_images(ami_ids=[self._get_param("ImageId")])[0].deprecation_time = None
        return ActionResult({"Return": True})

    def describe_snapshots(self) -> ActionResult:
        """moto asks for no owner, and has many snapshots of others."""
        answer = self.moto_describe_snapshots().result
        owners = [self.current_account if owner == "self" else owner for owner in self._get_param("OwnerIds", [])]
        kept = [one for one in answer["Snapshots"] if not owners or one.owner_id in owners]
        return ActionResult({**answer, "Snapshots": kept})

    # Import tasks

    def import_snapshot(self) -> ActionResult:
        return self._import("import-snap", "import-snapshot-task", [self._get_param("DiskContainer", {})])

    def import_image(self) -> ActionResult:
        return self._import("import-ami", "import-image-task", self._get_param("DiskContainers", []))

    def _import(self, prefix: str, kind: str, containers: list[dict[str, Any]]) -> ActionResult:
        backend = self.ec2_backend

        def make() -> dict[str, Any]:
            running = [task for task in tasks_of(backend).values() if task["state"] == "active"]
            if len(running) >= SETTINGS.importMost:
                raise EC2ClientError("ResourceCountLimitExceeded", "The maximum number of import tasks has been reached")
            place = containers[0]["UserBucket"]
            bucket = s3_backends[self.current_account]["aws"].buckets.get(place["S3Bucket"])
            key = bucket.keys.get(place["S3Key"]) if bucket else None
            if key is None:
                raise EC2ClientError("InvalidParameter", f"The given S3 object {place} does not exist")
            task = {
                "id": f"{prefix}-{hashlib.sha256(repr((place, len(tasks_of(backend)))).encode()).hexdigest()[:17]}",
                "kind": prefix,
                "state": "active",
                "left": SETTINGS.importSteps,
                "format": containers[0].get("Format", "raw"),
                "gib": max(1, -(-key.size // (1 << 30))),
                "place": place,
                "snapshot": None,
                "image": None,
                "architecture": self._get_param("Architecture", "x86_64"),
                "tags": convert_tag_spec(self._get_param("TagSpecifications", [])).get(kind, {}),
            }
            tasks_of(backend)[task["id"]] = task
            backend.tags[task["id"]] = dict(task["tags"])
            return shown(backend, task)

        return ActionResult(TOKENS.once(kind, self.region, self._get_param("ClientToken"), without_token(self), make))

    def describe_import_snapshot_tasks(self) -> ActionResult:
        return ActionResult({"ImportSnapshotTasks": self._tasks("import-snap")})

    def describe_import_image_tasks(self) -> ActionResult:
        return ActionResult({"ImportImageTasks": self._tasks("import-ami")})

    def _tasks(self, prefix: str) -> list[dict[str, Any]]:
        known = {key: task for key, task in tasks_of(self.ec2_backend).items() if task["kind"] == prefix}
        ids = self._get_param("ImportTaskIds", [])
        for each in ids:
            if each not in known:
                raise EC2ClientError("InvalidConversionTaskId.Malformed", f"Tasks not found: {each}")
        filters = self._filters_from_querystring()
        chosen = [known[each] for each in ids] or list(known.values())
        for task in chosen:
            if task["state"] == "active":
                if task["left"] <= 0:
                    finish(self.ec2_backend, task)
                task["left"] -= 1
        for name, values in filters.items():
            if name.startswith("tag:"):
                tags = self.ec2_backend.tags
                chosen = [task for task in chosen if tags.get(task["id"], {}).get(name[4:]) in values]
        return [shown(self.ec2_backend, task) for task in chosen]

    def cancel_import_task(self) -> ActionResult:
        task = tasks_of(self.ec2_backend).get(self._get_param("ImportTaskId"))
        if task is None:
            raise EC2ClientError("InvalidConversionTaskId.Malformed", "no such task")
        before = task["state"]
        if before == "active":
            task["state"] = "deleted"
        return ActionResult({"ImportTaskId": task["id"], "PreviousState": before, "State": task["state"]})


def tasks_of(backend: EC2Backend) -> dict[str, dict[str, Any]]:
    if not hasattr(backend, "ny_tasks"):
        backend.ny_tasks = {}
    return backend.ny_tasks


def finish(backend: EC2Backend, task: dict[str, Any]) -> None:
    """What an import makes has no tags: whoever asked for it puts them on."""
    task["state"] = "completed"
    about = f"Created by AWS-VMImport service for {task['id']}"
    snapshot = new_snapshot(backend, task["gib"], about)
    task["snapshot"] = snapshot.id
    if task["kind"] == "import-ami":
        mapping = {"DeviceName": "/dev/sda1", "Ebs": {"SnapshotId": snapshot.id, "VolumeSize": task["gib"], "VolumeType": "gp2"}}
        facts = {"description": about, "architecture": task["architecture"], "virtualization_type": "hvm", "ena_support": True}
        task["image"] = make_image(backend, task["id"], [mapping], facts).id


def shown(backend: EC2Backend, task: dict[str, Any]) -> dict[str, Any]:
    tags = [{"Key": key, "Value": value} for key, value in backend.tags.get(task["id"], {}).items()]
    progress = {"active": str(max(3, 90 - 20 * max(0, task["left"])))}.get(task["state"])
    about = {"Status": task["state"], "Progress": progress, "StatusMessage": "pending" if progress else None}
    detail = {"SnapshotId": task["snapshot"], "Format": task["format"], "UserBucket": task["place"]}
    if task["kind"] == "import-snap":
        return {"ImportTaskId": task["id"], "SnapshotTaskDetail": {**about, **detail}, "Tags": tags}
    details = [detail] if task["snapshot"] else []
    return {"ImportTaskId": task["id"], "ImageId": task["image"], "SnapshotDetails": details, "Tags": tags, **about}


# EBS direct


class Refused(ServiceException):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)


class Blocks:
    """Snapshots that are written: only digests of their blocks are kept, so that large images cost no memory."""

    def start_snapshot(self) -> ActionResult:
        def make() -> dict[str, Any]:
            ec2 = self.ebs_backend.ec2_backend
            size = int(self._get_param("VolumeSize"))
            snapshot = new_snapshot(ec2, size, self._get_param("Description") or "")
            snapshot.status = "pending"
            snapshot.add_tags({tag["Key"]: tag["Value"] for tag in self._get_param("Tags") or []})
            self.ebs_backend.ny_blocks[snapshot.id] = {"blocks": {}, "puts": 0, "left": None}
            return {
                "SnapshotId": snapshot.id,
                "OwnerId": self.current_account,
                "Status": "pending",
                "StartTime": utcnow(),
                "VolumeSize": size,
                "BlockSize": BLOCK,
                "Tags": self._get_param("Tags") or [],
            }

        names = ("VolumeSize", "Tags", "Description", "Timeout", "Encrypted", "ParentSnapshotId")
        shape = {name: self._get_param(name) for name in names}
        try:
            return ActionResult(TOKENS.once("StartSnapshot", self.region, self._get_param("ClientToken"), shape, make))
        except EC2ClientError as mismatch:
            raise Refused("ConflictException", mismatch.message) from mismatch

    def put_snapshot_block(self) -> ActionResult:
        state = self._pending()
        data, index = self._get_param("BlockData"), int(self._get_param("BlockIndex"))
        data = data if isinstance(data, bytes) else (data.read() if hasattr(data, "read") else str(data).encode("latin-1"))
        digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
        if len(data) != BLOCK or int(self._get_param("DataLength")) != BLOCK:
            raise Refused("ValidationException", f"block {index} has {len(data)} bytes, not {BLOCK}")
        if self._get_param("Checksum") != digest or self._get_param("ChecksumAlgorithm") != "SHA256":
            raise Refused("ValidationException", f"the checksum of block {index} is not that of its data")
        snapshot = self.ebs_backend.ec2_backend.snapshots[self._get_param("SnapshotId")]
        if index >= snapshot.volume_size * 2048:
            raise Refused("ValidationException", f"block {index} is beyond the end of the volume")
        state["blocks"][index] = digest
        state["puts"] += 1
        told = base64.b64encode(bytes(32)).decode() if index in SETTINGS.corruptBlocks else digest
        return ActionResult({"Checksum": told, "ChecksumAlgorithm": "SHA256"})

    def complete_snapshot(self) -> ActionResult:
        snapshot_id = self._get_param("SnapshotId")
        snapshot = self.ebs_backend.ec2_backend.snapshots.get(snapshot_id)
        if snapshot is not None and snapshot.status == "completed":
            return ActionResult({"Status": "completed"})
        state = self._pending()
        if int(self._get_param("ChangedBlocksCount")) != len(state["blocks"]):
            raise Refused("ValidationException", f"{len(state['blocks'])} blocks were written, not {self._get_param('ChangedBlocksCount')}")
        checksum = self._get_param("Checksum")
        if checksum is not None:
            ordered = b"".join(base64.b64decode(state["blocks"][index]) for index in sorted(state["blocks"]))
            if base64.b64encode(hashlib.sha256(ordered).digest()).decode() != checksum:
                raise Refused("ValidationException", "the checksum of the snapshot is not that of its blocks")
        state["left"] = SETTINGS.completionCalls if state["left"] is None else state["left"] - 1
        if state["left"] <= 0:
            snapshot.status = "completed"
        return ActionResult({"Status": snapshot.status})

    def _pending(self) -> dict[str, Any]:
        snapshot_id = self._get_param("SnapshotId")
        snapshot = self.ebs_backend.ec2_backend.snapshots.get(snapshot_id)
        if snapshot is None or snapshot_id not in self.ebs_backend.ny_blocks:
            raise Refused("ResourceNotFoundException", f"The snapshot {snapshot_id} does not exist")
        if snapshot.status != "pending":
            raise Refused("ValidationException", f"snapshot {snapshot_id} is {snapshot.status}")
        return self.ebs_backend.ny_blocks[snapshot_id]


def install() -> None:
    replace(EC2Response, Images)
    replace(EBSResponse, Blocks)
    EBSBackend.ny_blocks = property(lambda self: self.__dict__.setdefault("_ny_blocks", {}))
    invented = Ami.block_device_mappings
    Ami.block_device_mappings = property(
        lambda self: self.ny_mappings if hasattr(self, "ny_mappings") else invented.fget(self)
    )
    delete = EC2Backend.delete_snapshot

    def delete_snapshot(self: EC2Backend, snapshot_id: str) -> Any:
        for image in self.amis.values():
            if any(m["Ebs"]["SnapshotId"] == snapshot_id for m in mapped(image)):
                raise EC2ClientError("InvalidSnapshot.InUse", f"The snapshot {snapshot_id} is currently in use by {image.id}")
        if snapshot_id not in self.snapshots:
            raise InvalidSnapshotIdError()
        return delete(self, snapshot_id)

    EC2Backend.delete_snapshot = delete_snapshot
