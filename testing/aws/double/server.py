"""moto's server with what real AWS does and moto does not. Prints its port once it listens."""

import json
import os
import sys
import traceback
from typing import Any

# Unknown types, images and keys are refused, as by EC2. moto reads these when it is imported.
for _name in ("MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION", "MOTO_ENABLE_AMI_VALIDATION", "MOTO_ENABLE_KEYPAIR_VALIDATION"):
    os.environ.setdefault(_name, "true")
for _name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
    os.environ.setdefault(_name, "testing")

import boto3  # noqa: E402
import front  # noqa: E402
import images  # noqa: E402
import instances  # noqa: E402
import prices  # noqa: E402
from moto.ebs.models import ebs_backends  # noqa: E402
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app  # noqa: E402
from moto.servicequotas.responses import ServiceQuotasResponse  # noqa: E402
from settings import CALLS, LOCK, SETTINGS  # noqa: E402
from werkzeug.serving import make_server  # noqa: E402


def list_service_quotas(self: Any) -> str:
    """moto knows the quotas of VPCs alone."""
    params = json.loads(self.body)
    values = SETTINGS.quotas.get(params["ServiceCode"], {})
    begin = int(params.get("NextToken") or 0)
    end = begin + min(int(params.get("MaxResults") or 100), SETTINGS.pageSize)
    page = list(values.items())[begin:end]
    quotas = [
        {"ServiceCode": params["ServiceCode"], "QuotaCode": code, "QuotaName": code, "Value": value, "Unit": "None"}
        for code, value in page
    ]
    more = {"NextToken": str(end)} if end < len(values) else {}
    return json.dumps({"Quotas": quotas, **more})


def make_site(base: str, region: str) -> dict[str, Any]:
    """What an account has before Nodeyard comes: network, key, image, bucket. By the public API alone."""
    make = lambda service: boto3.client(service, region_name=region, endpoint_url=base)
    ec2, s3, iam = make("ec2"), make("s3"), make("iam")
    vpc = ec2.create_vpc(CidrBlock="203.0.0.0/16")["Vpc"]["VpcId"]
    subnets = {}
    for number, letter in enumerate("abc"):
        cidr = f"203.0.{number * 64}.0/18"
        zone = f"{region}{letter}"
        subnets[zone] = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName=f"nodes-{vpc}", Description="nodes", VpcId=vpc)["GroupId"]
    if not any(key["KeyName"] == "zuul" for key in ec2.describe_key_pairs()["KeyPairs"]):
        ec2.create_key_pair(KeyName="zuul")
    try:
        s3.create_bucket(Bucket="nodepool", CreateBucketConfiguration={"LocationConstraint": region})
    except s3.exceptions.BucketAlreadyOwnedByYou:
        pass
    try:
        iam.create_instance_profile(InstanceProfileName="not-a-real-profile")
    except iam.exceptions.EntityAlreadyExistsException:
        pass
    images = ["ami-1e749f67", "ami-12c6146b"]
    return {"region": region, "vpc": vpc, "subnets": subnets, "securityGroup": group, "key": "zuul", "bucket": "nodepool",
            "instanceProfile": "not-a-real-profile", "images": images}  # fmt: skip


def control(environ: dict[str, Any], start: Any) -> Any:
    """`/_nodeyard/...`: see README.md, "Control"."""
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"][len(front.CONTROL) :]
    length = int(environ.get("CONTENT_LENGTH") or 0)
    status = "200 OK"
    try:
        given = json.loads(environ["wsgi.input"].read(length)) if length else {}
        answer = route(method, path, given, f"http://{environ['HTTP_HOST']}")
        if answer is None:
            status, answer = "404 Not Found", {"error": f"no {method} {path}"}
    except Exception as error:  # noqa: BLE001: whatever it is, the test that asked has to see it
        traceback.print_exc()
        status, answer = "400 Bad Request", {"error": f"{type(error).__name__}: {error}"}
    body = json.dumps(answer, default=str).encode()
    start(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def route(method: str, path: str, given: dict[str, Any], base: str) -> Any:
    if (method, path) == ("POST", "/site"):
        return make_site(base, given.get("region", "us-west-2"))
    with LOCK:
        if (method, path) == ("GET", "/calls"):
            return {"counts": dict(CALLS.counts), "entries": list(CALLS.entries)}
        if (method, path) == ("GET", "/counts"):
            return dict(CALLS.counts)
        if (method, path) == ("DELETE", "/calls"):
            CALLS.reset()
            return {}
        if (method, path) == ("PUT", "/settings"):
            SETTINGS.change(given)
            return SETTINGS.values
        if (method, path) == ("DELETE", "/settings"):
            SETTINGS.reset()
            front.THROTTLE.levels.clear()
            # Tokens are forgotten, as AWS does after hours: tests of one server use the same ids.
            instances.TOKENS.known.clear()
            return {}
        if (method, path) == ("POST", "/interrupt"):
            action, notice = given.get("action", "terminate"), given.get("noticeMs", 120_000)
            return {"found": instances.interrupt(given["instance"], action, notice)}
        if (method, path) == ("GET", "/machines"):
            return instances.made()
        if (method, path) == ("GET", "/volumes"):
            return instances.idle_volumes()
        if method == "GET" and path.startswith("/snapshots/"):
            return blocks_of(path.removeprefix("/snapshots/"))
    return None


def blocks_of(snapshot: str) -> Any:
    for regions in ebs_backends.values():
        for backend in regions.values():
            if snapshot in backend.ny_blocks:
                status = backend.ec2_backend.snapshots[snapshot].status
                return {**backend.ny_blocks[snapshot], "status": status}
    return None


class Handler(MotoRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, *_: Any) -> None:
        """A test reads the calls by the control path."""


def main() -> None:
    instances.install()
    images.install()
    prices.install()
    ServiceQuotasResponse.list_service_quotas = list_service_quotas
    app = front.Front(DomainDispatcherApplication(create_backend_app), control)
    server = make_server("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0, app, threaded=True, request_handler=Handler)
    print(f"listens {server.port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
