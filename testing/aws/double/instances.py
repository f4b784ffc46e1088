"""Instances, fleets and dedicated hosts as EC2 runs them: idempotent, slow, eventually consistent, and not without limits."""

import copy
import json
import re
import threading
from collections.abc import Callable
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.exceptions import EC2ClientError, InvalidInstanceIdError
from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.instances import Instance, InstanceState, StateReason
from moto.ec2.responses import EC2Response
from moto.ec2.utils import convert_tag_spec
from settings import LOCK, SETTINGS, now_ms

ALIVE = ("pending", "running", "shutting-down", "stopping", "stopped")
CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}

# Changes that are due later, by time; a thread carries them out, so that notices go out without a call.
_later: list[tuple[float, Callable[[], None]]] = []
_wake = threading.Event()


def later(ms: float, change: Callable[[], None]) -> None:
    if ms <= 0:
        change()
        return
    _later.append((now_ms() + ms, change))
    _wake.set()


def run_due() -> None:
    while True:
        with LOCK:
            due = [one for one in _later if one[0] <= now_ms()]
            for one in due:
                _later.remove(one)
                one[1]()
            wait = min((at for at, _ in _later), default=now_ms() + 3_600_000) - now_ms()
            _wake.clear()
        _wake.wait(max(0.005, wait / 1000))


def notify(instance: Instance, kind: str, detail: dict[str, Any]) -> None:
    """Tells EventBridge, whose rules send it on, as EC2 does."""
    from moto.events.models import events_backends

    backend = events_backends[instance.ec2_backend.account_id][instance.ec2_backend.region_name]
    event = {
        "version": "0",
        "id": instance.id,
        "detail-type": kind,
        "source": "aws.ec2",
        "account": instance.ec2_backend.account_id,
        "time": utcnow().timestamp(),
        "ingestion-time": utcnow().timestamp(),
        "region": instance.ec2_backend.region_name,
        "resources": [f"arn:aws:ec2:{instance.ec2_backend.region_name}:{instance.ec2_backend.account_id}:instance/{instance.id}"],
        "detail": {"instance-id": instance.id, **detail},
    }
    for rule in backend.event_buses["default"].rules.values():
        rule.send_to_targets(copy.deepcopy(event))


def set_state(instance: Instance, name: str) -> None:
    instance._state = InstanceState(name, CODES[name])
    notify(instance, "EC2 Instance State-change Notification", {"state": name})


def alive(backend: EC2Backend) -> list[Instance]:
    found = (one for reservation in backend.reservations.values() for one in reservation.instances)
    return [one for one in found if one.state in ALIVE]


def tag_of(backend: EC2Backend, resource: str, key: str) -> str | None:
    return backend.tags.get(resource, {}).get(key)


def each_backend() -> list[EC2Backend]:
    return [backend for regions in ec2_backends.values() for backend in regions.values()]


def made() -> list[dict[str, Any]]:
    """Every instance of a node that is still listed, terminated ones included; without a call of the API."""
    found = [(b, one) for b in each_backend() for r in b.reservations.values() for one in r.instances]
    all_made = [{"id": one.id, "node": tag_of(b, one.id, "nodepool_node_id"), "state": one.state} for b, one in found]
    return [one for one in all_made if one["node"] is not None]


def idle_volumes() -> list[str]:
    """Volumes of nodes that no instance has."""
    volumes = [(b, one) for b in each_backend() for one in b.volumes.values()]
    return [one.id for b, one in volumes if one.attachment is None and tag_of(b, one.id, "nodepool_node_id") is not None]


def market_of(instance: Instance) -> str:
    return "spot" if instance.lifecycle == "spot" else "on-demand"


# Quota codes of vCPUs by what an instance type begins with: on demand, spot.
FAMILIES = [
    (r"u-", "L-43DA4232", None),
    (r"inf", "L-1945791B", "L-B5D1601B"),
    (r"trn", "L-2C3B7624", "L-6B0D517C"),
    (r"dl", "L-6E869C2A", "L-85EED4F7"),
    (r"f\d", "L-74FC7D96", "L-88CF9481"),
    (r"(g|vt)\d", "L-DB2E81BA", "L-3819A6DF"),
    (r"p\d", "L-417A185B", "L-7212CCBC"),
    (r"x\d", "L-7295265B", "L-E3A00192"),
    (r"(a|c|d|h|i|m|r|t|z)\d", "L-1216C47A", "L-34B43A08"),
]
VOLUME_CODES = {"gp2": "L-D18FCD1D", "gp3": "L-7A658B76", "io1": "L-FD252861", "io2": "L-09BD8365"}


def code_of(kind: str, market: str) -> str | None:
    for pattern, demand, spot in FAMILIES:
        if re.match(pattern, kind):
            return spot if market == "spot" else demand
    return None


def cpus_of(kind: str) -> int:
    from moto.ec2.models.instance_types import INSTANCE_TYPES

    return int(INSTANCE_TYPES.get(kind, {}).get("VCpuInfo", {}).get("DefaultVCpus", 1))


def check_room(backend: EC2Backend, kind: str, zone: str, market: str) -> None:
    """Refuses as EC2 would: the account's quota first, then what the zone has. Instances that are stopped use neither."""
    running = [one for one in alive(backend) if one.placement.host_id is None and one.state not in ("stopping", "stopped")]
    code = code_of(kind, market)
    limit = SETTINGS.quotas.get("ec2", {}).get(code)
    if SETTINGS.enforce and limit is not None:
        same = [one for one in running if code_of(one.instance_type, market_of(one)) == code]
        if sum(cpus_of(one.instance_type) for one in same) + cpus_of(kind) > limit:
            if market == "spot":
                raise EC2ClientError("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
            raise EC2ClientError(
                "VcpuLimitExceeded", f"You have requested more vCPU capacity than your current vCPU limit of {limit:g} allows"
            )
    for rule in SETTINGS.capacity:
        fits = lambda z, t, m: all(
            rule.get(key, "*") in ("*", value) for key, value in (("zone", z), ("type", t), ("market", m))
        )
        if not fits(zone, kind, market):
            continue
        taken = sum(1 for one in running if fits(one.placement.zone, one.instance_type, market_of(one)))
        if taken >= rule.get("most", 0):
            raise EC2ClientError(
                "InsufficientInstanceCapacity",
                f"We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone}).",
            )


def check_volumes(backend: EC2Backend, mappings: list[dict[str, Any]]) -> None:
    for kind, code in VOLUME_CODES.items():
        limit = SETTINGS.quotas.get("ebs", {}).get(code)
        wanted = sum(int(m.get("Ebs", {}).get("VolumeSize") or 8) for m in mappings if m.get("Ebs", {}).get("VolumeType") == kind)
        if not SETTINGS.enforce or limit is None or wanted == 0:
            continue
        used = sum(volume.size or 0 for volume in backend.volumes.values() if volume.volume_type == kind)
        if used + wanted > limit * 1024:
            raise EC2ClientError("VolumeLimitExceeded", f"You have exceeded your maximum {kind} storage limit of {limit:g} TiB")


def zone_of(backend: EC2Backend, subnet: str | None, zone: str | None) -> str:
    if subnet:
        return backend.get_subnet(subnet).availability_zone
    return zone or f"{backend.region_name}a"


_addresses = iter(range(2, 1 << 16))


def launched(instance: Instance, mappings: list[dict[str, Any]]) -> None:
    """What moto leaves out of an instance that it made."""
    instance.ny_hidden = SETTINGS.invisible
    by_device = {mapping.get("DeviceName"): mapping.get("Ebs", {}) for mapping in mappings}
    for device, attached in instance.get_block_device_mapping:
        volume, ebs = instance.ec2_backend.volumes[attached.volume_id], by_device.get(device, {})
        volume.volume_type = ebs.get("VolumeType", volume.volume_type)
        volume.iops = ebs.get("Iops", volume.iops)
        volume.throughput = ebs.get("Throughput", volume.throughput)
        if volume.size is None:
            snapshot = instance.ec2_backend.snapshots.get(volume.snapshot_id)
            volume.size = snapshot.volume_size if snapshot else 8
    booted(instance)


def booted(instance: Instance) -> None:
    if SETTINGS.addresses:
        number = next(_addresses)
        address = f"{SETTINGS.addresses}{number >> 8}.{number & 255}"
        nic = instance.nics[0]
        nic.private_ip_address = address
        if nic.public_ip:
            nic.public_ip = address
    set_state(instance, "pending")
    later(SETTINGS.pendingMs, lambda: set_state(instance, "running") if instance.state == "pending" else None)


def change_of(instance: Instance, before: InstanceState) -> dict[str, Any]:
    of = lambda state: {"Name": state.name, "Code": state.code}
    return {"InstanceId": instance.id, "CurrentState": of(instance._state), "PreviousState": of(before)}


def bare(mappings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mappings as moto takes them: a size, which EC2 takes from the image, and no type that wants more; `launched` sets the rest."""
    return [
        {**one, "Ebs": {"DeleteOnTermination": True, "VolumeSize": 8, **{k: v for k, v in one["Ebs"].items() if k in ("VolumeSize", "SnapshotId")}}}
        for one in mappings
        if "Ebs" in one
    ]


def ended(instance: Instance, reason: str = "Client.UserInitiatedShutdown") -> None:
    instance.state_reason = StateReason(f"{reason}: {reason.split('.')[1]}", reason)
    set_state(instance, "shutting-down")

    def gone() -> None:
        set_state(instance, "terminated")
        later(SETTINGS.forgetMs, lambda: forget(instance))

    later(SETTINGS.stoppingMs, gone)


def request_of(instance: Instance) -> dict[str, Any]:
    """The spot request of an instance ("Spot request status" in the EC2 User Guide)."""
    over = "fulfilled" if instance.state in ("pending", "running") else "instance-terminated-by-user"
    code, at = getattr(instance, "ny_request", (over, instance.launch_time))
    return {
        "SpotInstanceRequestId": f"sir-{instance.id[2:10]}", "InstanceId": instance.id, "Type": "one-time",
        "State": "active" if code == "fulfilled" else "closed", "Status": {"Code": code, "UpdateTime": at, "Message": code},
    }  # fmt: skip


def forget(instance: Instance) -> None:
    for key, reservation in list(instance.ec2_backend.reservations.items()):
        reservation.instances = [one for one in reservation.instances if one.id != instance.id]
        if not reservation.instances:
            del instance.ec2_backend.reservations[key]
    instance.ec2_backend.tags.pop(instance.id, None)


class Tokens:
    """ClientToken: the same call again has the same answer, another one is refused ("Ensuring idempotency in EC2 API requests")."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str, str], tuple[str, Any]] = {}

    def once(self, action: str, region: str, token: str | None, params: Any, make: Callable[[], Any]) -> Any:
        if not token:
            return make()
        key, shape = (action, region, token), json.dumps(params, sort_keys=True, default=str)
        before = self.known.get(key)
        if before is not None:
            if before[0] != shape:
                raise EC2ClientError(
                    "IdempotentParameterMismatch", "The client token you have provided is associated with other parameters."
                )
            return before[1]
        made = make()
        self.known[key] = (shape, made)
        return made


TOKENS = Tokens()


def without_token(response: Any) -> dict[str, Any]:
    return {key: value for key, value in response.data.items() if key not in ("ClientToken", "Action", "Version")}


class Instances:
    """Replaces these actions of moto's EC2Response; `moto_` names what was there before."""

    def run_instances(self) -> ActionResult:
        kind = self._get_param("InstanceType", "m1.small")
        nics = self._get_param("NetworkInterfaces", [])
        subnet = self._get_param("SubnetId") or next((n["SubnetId"] for n in nics if "SubnetId" in n), None)
        market = "spot" if self._get_param("InstanceMarketOptions.MarketType") == "spot" else "on-demand"
        mappings = self._get_param("BlockDeviceMappings", [])

        def make() -> Any:
            if not self._get_param("Placement.HostId"):
                check_room(self.ec2_backend, kind, zone_of(self.ec2_backend, subnet, self._get_param("Placement.AvailabilityZone")), market)
            check_volumes(self.ec2_backend, mappings)
            reservation = self.moto_run_instances().result
            for instance in reservation.instances:
                if market == "on-demand":
                    instance.lifecycle = None
                instance.placement.tenancy = self._get_param("Placement.Tenancy", "default")
                if nics and nics[0].get("Ipv6AddressCount"):
                    instance.nics[0].ipv6_addresses = [f"2001:db8::{len(self.ec2_backend.reservations):x}"]
                launched(instance, mappings)
            return reservation

        token = self._get_param("ClientToken")
        return ActionResult(TOKENS.once("RunInstances", self.region, token, without_token(self), make))

    def create_fleet(self) -> ActionResult:
        if self._get_param("Type") != "instant":
            return self.moto_create_fleet()
        token = self._get_param("ClientToken")
        return ActionResult(TOKENS.once("CreateFleet", self.region, token, without_token(self), self._instant_fleet))

    def _instant_fleet(self) -> dict[str, Any]:
        """The first override that has room, in the order of priority; what refused the others is told."""
        backend = self.ec2_backend
        target = self._get_param("TargetCapacitySpecification", {})
        market = target.get("DefaultTargetCapacityType", "on-demand")
        tags = convert_tag_spec(self._get_param("TagSpecifications", []))
        made: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        choices = [
            (override, config["LaunchTemplateSpecification"])
            for config in self._get_param("LaunchTemplateConfigs", [])
            for override in config.get("Overrides") or [{}]
        ]
        choices.sort(key=lambda choice: float(choice[0].get("Priority", 0)))
        for override, spec in choices * int(target.get("TotalTargetCapacity", 1)):
            if len(made) == int(target.get("TotalTargetCapacity", 1)):
                break
            template = backend._get_template_from_args({"Version": "$Latest", **spec}).data
            merged = {**template, **override}
            nics = merged.get("NetworkInterfaces", [])
            subnet = merged.get("SubnetId") or next((n["SubnetId"] for n in nics if "SubnetId" in n), None)
            named = merged.get("AvailabilityZone") or merged.get("Placement", {}).get("AvailabilityZone")
            mappings = merged.get("BlockDeviceMappings", [])
            about = {"LaunchTemplateAndOverrides": {"LaunchTemplateSpecification": spec, "Overrides": override}, "Lifecycle": market}
            try:
                check_room(backend, merged["InstanceType"], zone_of(backend, subnet, named), market)
                check_volumes(backend, mappings)
                reservation = backend.run_instances(
                    merged["ImageId"], 1, merged.get("UserData"), [],
                    instance_type=merged["InstanceType"], is_instance_type_default=False, region_name=self.region,
                    placement=None if subnet else named, subnet_id=None if nics else subnet, key_name=merged.get("KeyName"),
                    security_group_ids=list(merged.get("SecurityGroupIds", [])), nics=nics, tags=tags,
                    ebs_optimized=merged.get("EbsOptimized", False), metadata_options=merged.get("MetadataOptions", {}),
                    **({"block_device_mappings": bare(mappings)} if mappings else {}),
                )  # fmt: skip
            except EC2ClientError as refusal:
                errors.append({**about, "ErrorCode": refusal.code, "ErrorMessage": refusal.message})
                continue
            instance = reservation.instances[0]
            instance.lifecycle = "spot" if market == "spot" else None
            launched(instance, mappings)
            made.append({**about, "InstanceIds": [instance.id], "InstanceType": instance.instance_type})
        return {"FleetId": f"fleet-{now_ms():.0f}", "Errors": [] if made else errors, "Instances": made}

    def terminate_instances(self) -> ActionResult:
        ids = self._get_param("InstanceIds", [])
        known = {one.id: one for reservation in self.ec2_backend.reservations.values() for one in reservation.instances}
        missing = [each for each in ids if each not in known or known[each].ny_hidden > 0]
        if missing:
            for each in missing:
                if each in known:
                    known[each].ny_hidden -= 1
            raise InvalidInstanceIdError(missing)
        before = {each: copy.copy(known[each]._state) for each in ids}
        over = [each for each in ids if known[each].state in ("shutting-down", "terminated")]
        fresh = [each for each in ids if each not in over]
        if fresh:
            self.ec2_backend.terminate_instances(fresh)
            for each in fresh:
                ended(known[each])
        return ActionResult({"TerminatingInstances": [change_of(known[each], before[each]) for each in ids]})

    def stop_instances(self) -> ActionResult:
        """What is stopped already is no error. A public address that EC2 gave is given back ("Stop and start Amazon EC2 instances")."""

        def stop(one: Instance) -> None:
            if one.state not in ("running", "stopping", "stopped"):
                raise EC2ClientError(
                    "IncorrectInstanceState", f"The instance '{one.id}' is not in a state from which it can be stopped."
                )
            if one.lifecycle == "spot":
                raise EC2ClientError(
                    "UnsupportedOperation",
                    f"You can't stop the Spot Instance '{one.id}' because it is associated with a one-time Spot Instance request. "
                    "You can only stop Spot Instances associated with persistent Spot Instance requests.",
                )
            if one.state == "running":
                one.stop()
                set_state(one, "stopping")
                later(SETTINGS.stoppingMs, lambda: set_state(one, "stopped") if one.state == "stopping" else None)

        return self._changed("StoppingInstances", stop)

    def start_instances(self) -> ActionResult:
        """It needs room as a launch does, and gets a new public address."""

        def start(one: Instance) -> None:
            if one.state not in ("stopped", "pending", "running"):
                raise EC2ClientError(
                    "IncorrectInstanceState", f"The instance '{one.id}' is not in a state from which it can be started."
                )
            if one.state == "stopped":
                if one.placement.host_id is None:
                    check_room(self.ec2_backend, one.instance_type, one.placement.zone, market_of(one))
                one.start()
                booted(one)

        return self._changed("StartingInstances", start)

    def _changed(self, key: str, change: Callable[[Instance], None]) -> ActionResult:
        ids = self._get_param("InstanceIds", [])
        known = {one.id: one for reservation in self.ec2_backend.reservations.values() for one in reservation.instances}
        if missing := [each for each in ids if each not in known]:
            raise InvalidInstanceIdError(missing)
        before = {each: copy.copy(known[each]._state) for each in ids}
        for each in ids:
            change(known[each])
        return ActionResult({key: [change_of(known[each], before[each]) for each in ids]})

    def describe_spot_instance_requests(self) -> ActionResult:
        """moto makes no request for an instance that RunInstances or a fleet bought."""
        filters = self._filters_from_querystring()
        everything = [
            one for reservation in self.ec2_backend.reservations.values() for one in reservation.instances if one.lifecycle == "spot"
        ]
        requests = [request_of(one) for one in everything if one.ny_hidden <= 0]
        named = {"status-code": lambda one: one["Status"]["Code"], "state": lambda one: one["State"], "instance-id": lambda one: one["InstanceId"]}
        for name, values in filters.items():
            requests = [one for one in requests if named[name](one) in values]
        begin = int(self._get_param("NextToken") or 0)
        end = begin + SETTINGS.pageSize
        more = {"NextToken": str(end)} if end < len(requests) else {}
        return ActionResult({"SpotInstanceRequests": requests[begin:end], **more})

    def describe_instances(self) -> ActionResult:
        return self._looked(self.moto_describe_instances)

    def describe_instance_status(self) -> ActionResult:
        return self._looked(self.moto_describe_instance_status)

    def _looked(self, describe: Callable[[], ActionResult]) -> ActionResult:
        hidden = [
            one
            for reservation in self.ec2_backend.reservations.values()
            for one in reservation.instances
            if getattr(one, "ny_hidden", 0) > 0
        ]
        self.ec2_backend.ny_hide = {one.id for one in hidden}
        try:
            return describe()
        finally:
            self.ec2_backend.ny_hide = set()
            for one in hidden:
                one.ny_hidden -= 1

    def allocate_hosts(self) -> ActionResult:
        backend = self.ec2_backend
        zone, kind = self._get_param("AvailabilityZone"), self._get_param("InstanceType")

        def make() -> dict[str, Any]:
            for rule in SETTINGS.capacity:
                if rule.get("market") == "host" and rule.get("zone", "*") in ("*", zone) and rule.get("type", "*") in ("*", kind):
                    taken = [h for h in backend.hosts.values() if not h.state.startswith("released")]
                    if len(taken) >= rule.get("most", 0):
                        raise EC2ClientError("InsufficientHostCapacity", f"no {kind} host is left in {zone}")
            answer = self.moto_allocate_hosts().result
            for host_id in answer["HostIds"]:
                host = backend.hosts[host_id]
                host.state = "pending"
                later(SETTINGS.pendingMs, lambda host=host: setattr(host, "state", "available"))
            return answer

        return ActionResult(TOKENS.once("AllocateHosts", self.region, self._get_param("ClientToken"), without_token(self), make))

    def release_hosts(self) -> ActionResult:
        """Occupied hosts and unknown ones are named in the answer, which is no error."""
        done, refused = [], []
        occupied = {one.placement.host_id for one in alive(self.ec2_backend)}
        for host_id in self._get_param("HostIds", []):
            host = self.ec2_backend.hosts.get(host_id)
            if host is None or host_id in occupied:
                code = "Client.InvalidHost.NotFound" if host is None else "Client.InvalidHost.Occupied"
                refused.append({"ResourceId": host_id, "Error": {"Code": code, "Message": f"{host_id} cannot be released"}})
            else:
                host.release()
                done.append(host_id)
        return ActionResult({"Successful": done, "Unsuccessful": refused})


def interrupt(instance_id: str, action: str, notice_ms: float) -> bool:
    """A spot instance is taken back: two minutes after its notice, or when the test says; "rebalance" is a recommendation alone."""
    for accounts in ec2_backends.values():
        for backend in accounts.values():
            for one in alive(backend):
                if one.id != instance_id:
                    continue
                if action == "rebalance":
                    notify(one, "EC2 Instance Rebalance Recommendation", {})
                    return True
                # From the notice on, though the instance runs for two minutes more.
                one.ny_request = ("instance-terminated-no-capacity", utcnow())
                notify(one, "EC2 Spot Instance Interruption Warning", {"instance-action": "terminate"})

                def take(one: Instance = one) -> None:
                    if one.state in ("pending", "running"):
                        one.ec2_backend.terminate_instances([one.id])
                        ended(one, "Server.SpotInstanceTermination")

                later(notice_ms, take)
                return True
    return False


def replace(target: type, source: type) -> None:
    for name, method in vars(source).items():
        if callable(method) and not name.startswith("__"):
            if hasattr(target, name):
                setattr(target, f"moto_{name}", getattr(target, name))
            setattr(target, name, method)


def paged(action: str, key: str) -> None:
    """moto gives these lists whole; EC2 gives pages to whom asks for them, and never more than it likes."""
    whole = getattr(EC2Response, action)

    def page(self: Any) -> ActionResult:
        answer = whole(self).result
        items = list(answer[key])
        begin = int(self._get_param("NextToken") or 0)
        asked = self._get_param("MaxResults")
        if asked is None and not begin:
            return ActionResult(answer)
        end = begin + min(int(asked or 1000), SETTINGS.pageSize)
        return ActionResult({**answer, key: items[begin:end], "NextToken": str(end) if end < len(items) else None})

    setattr(EC2Response, action, page)


def install() -> None:
    replace(EC2Response, Instances)
    Instance.ny_hidden = 0
    EC2Backend.ny_hide = set()
    every = EC2Backend.all_reservations

    def seen(self: EC2Backend, filters: Any = None) -> Any:
        found = every(self, filters)
        for reservation in found:
            reservation.instances = [one for one in reservation.instances if one.id not in self.ny_hide]
        return [reservation for reservation in found if reservation.instances]

    EC2Backend.all_reservations = seen
    # moto compares each tag of the account with a pattern, for each resource that it shows.
    from moto.ec2.models.core import TaggedEC2Resource
    from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix

    def tags_of(self: Any) -> list[dict[str, str]]:
        tags = self.ec2_backend.tags.get(self.id, {}) if self.id else {}
        kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(self.id), "") if self.id else ""
        return [{"resource_id": self.id, "key": k, "value": v, "resource_type": kind} for k, v in tags.items()]

    TaggedEC2Resource.get_tags = tags_of
    for action, key in [
        ("describe_images", "Images"),
        ("describe_snapshots", "Snapshots"),
        ("describe_volumes", "Volumes"),
        ("describe_hosts", "Hosts"),
        ("describe_network_interfaces", "NetworkInterfaces"),
        ("describe_launch_templates", "LaunchTemplates"),
        ("describe_instance_types", "InstanceTypes"),
    ]:
        paged(action, key)
    threading.Thread(target=run_due, daemon=True).start()
