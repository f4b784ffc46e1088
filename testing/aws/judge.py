"""The request that boto3 makes in each case of a JSON file, as Nodepool's driver makes its session: where it goes, and who signs it."""

import json
import os
import sys
from typing import Any

import boto3


class Stopped(Exception):
    pass


def stop(request: Any, **_: Any) -> None:
    raise Stopped(request)


def said(profile: str | None, region: str | None) -> dict[str, Any]:
    session = boto3.Session(profile_name=profile, region_name=region)
    ec2 = session.client("ec2")
    ec2.meta.events.register("before-send.ec2", stop)
    try:
        ec2.describe_instances()
    except Stopped as stopped:
        request = stopped.args[0]
    text = {name.lower(): value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()}
    return {
        "url": request.url,
        "authorization": text["authorization"],
        "secret": session.get_credentials().secret_key,
        "token": text.get("x-amz-security-token"),
    }


around = dict(os.environ)
found = {}
with open(sys.argv[1]) as file:
    cases = json.load(file)
for name, case in cases.items():
    os.environ.clear()
    os.environ.update(around, **case["env"])
    found[name] = said(case.get("profile"), case.get("region"))
print(json.dumps(found))
