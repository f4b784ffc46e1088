"""Stands before moto: names, counts, refuses and delays calls as the real endpoints do, whoever sends them."""

import io
import json
import re
import time
from typing import Any
from urllib.parse import parse_qsl

import prices
from settings import CALLS, LOCK, SETTINGS, now_ms

CONTROL = "/_nodeyard"

# "Request throttling for the Amazon EC2 API" and "Amazon EBS endpoints and quotas": tokens, and tokens a second.
BUCKETS = {
    "ec2.RunInstances": (5, 2),
    "ec2.TerminateInstances": (100, 5),
    "ec2.CreateTags": (100, 10),
    "ec2.CreateLaunchTemplateVersion": (100, 5),
    "ec2.DeleteSnapshot": (100, 5),
    "ec2.DeleteVolume": (100, 5),
    "ebs.StartSnapshot": (10, 10),
    "ebs.CompleteSnapshot": (10, 10),
    "ebs.PutSnapshotBlock": (1000, 1000),
}
NON_MUTATING, WHOLE_LISTING, MUTATING = (100, 20), (50, 10), (50, 5)
# Each machine takes a token of these as well.
RESOURCES = {"ec2.RunInstances": (1000, 2), "ec2.TerminateInstances": (1000, 20)}
READS = re.compile(r"^(Describe|Get|List|Search)")

S3_SUB = ["uploads", "tagging", "uploadId", "acl", "policy", "location", "versioning"]


def service_of(environ: dict[str, Any]) -> tuple[str, str]:
    """Service and region that the request was signed for; S3 where it was not signed."""
    found = re.search(r"Credential=[^/]+/\d+/([^/]+)/([^/]+)/aws4_request", environ.get("HTTP_AUTHORIZATION", ""))
    return (found[2], found[1]) if found else ("s3", "us-east-1")


def call_of(environ: dict[str, Any], body: bytes) -> tuple[str, str, dict[str, str]]:
    """`service.Action`, the region, and parameters."""
    service, region = service_of(environ)
    method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "/")
    query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    target = environ.get("HTTP_X_AMZ_TARGET")
    if target is not None:
        return f"{service}.{target.split('.')[-1]}", region, {"body": body[:20_000].decode("utf-8", "replace")}
    if service == "ebs":
        return f"ebs.{ebs_action(method, path)}", region, {"path": path, **query}
    if service == "s3":
        return f"s3.{s3_action(method, path, query)}", region, {"path": path, **query}
    params = {**query, **dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))}
    return f"{service}.{params.get('Action', method)}", region, params


def ebs_action(method: str, path: str) -> str:
    if method == "PUT":
        return "PutSnapshotBlock"
    if method == "POST":
        return "CompleteSnapshot" if path.startswith("/snapshots/completion/") else "StartSnapshot"
    return "GetSnapshotBlock" if re.search(r"/blocks/\d", path) else "ListSnapshotBlocks"


def s3_action(method: str, path: str, query: dict[str, str]) -> str:
    key = path.strip("/").partition("/")[2]
    sub = next((name for name in S3_SUB if name in query), None)
    if not key:
        names = {"GET": "ListMultipartUploads" if sub == "uploads" else "ListObjects", "PUT": "CreateBucket"}
        return names.get(method, {"HEAD": "HeadBucket", "DELETE": "DeleteBucket"}.get(method, f"{method}Bucket"))
    if sub == "tagging":
        return {"GET": "GetObjectTagging", "PUT": "PutObjectTagging"}.get(method, "DeleteObjectTagging")
    if sub == "uploads":
        return "CreateMultipartUpload"
    if sub == "uploadId":
        names = {"PUT": "UploadPart", "POST": "CompleteMultipartUpload", "DELETE": "AbortMultipartUpload"}
        return names.get(method, "ListParts")
    return {"PUT": "PutObject", "GET": "GetObject", "HEAD": "HeadObject"}.get(method, "DeleteObject")


class Throttle:
    def __init__(self) -> None:
        self.levels: dict[str, tuple[float, float]] = {}

    def take(self, key: str, size: float, refill: float, tokens: float = 1) -> bool:
        at = time.monotonic()
        level, before = self.levels.get(key, (size, at))
        level = min(size, level + (at - before) * refill)
        taken = level >= tokens
        self.levels[key] = (level - tokens if taken else level, at)
        return taken

    def refuses(self, call: str, region: str, params: dict[str, str]) -> bool:
        service, _, action = call.partition(".")
        if service not in ("ec2", "ebs"):
            return False
        size, refill = BUCKETS.get(call) or self.category(action, params)
        if not self.take(f"{region}/{call}", size, refill):
            return True
        resource = RESOURCES.get(call)
        count = sum(1 for name in params if name.startswith("InstanceId.")) or int(params.get("MaxCount") or 1)
        return resource is not None and not self.take(f"{region}/{call}/resources", *resource, tokens=count)

    @staticmethod
    def category(action: str, params: dict[str, str]) -> tuple[int, int]:
        if not READS.match(action):
            return MUTATING
        narrowed = any(re.match(r"(MaxResults|NextToken|Filter\.|\w+Id\.\d)", name) for name in params)
        return NON_MUTATING if narrowed else WHOLE_LISTING


THROTTLE = Throttle()


def hold(call: str, number: int) -> None:
    """Calls beyond the first `after` of them wait until the test takes the fault away; `silence`: the first `times` of them."""
    for fault in SETTINGS.faults:
        if fault["call"] == call and fault.get("how") == "silence" and fault.get("times", 1) > 0:
            fault["times"] = fault.get("times", 1) - 1
            while fault in SETTINGS.faults:
                time.sleep(0.02)
    while any(f["call"] == call and f.get("how") == "hold" and number > f.get("after", 0) for f in SETTINGS.faults):
        time.sleep(0.02)


def hides(call: str, params: dict[str, str]) -> bool:
    """Whether a list is to be empty: what is asked for by its id is answered."""
    named = any(re.match(r"\w+Id\.\d", name) for name in params)
    return not named and any(f["call"] == call and f.get("how") == "empty" for f in SETTINGS.faults)


def fault_for(call: str) -> dict[str, Any] | None:
    for fault in SETTINGS.faults:
        if fault.get("how") in ("hold", "silence", "empty"):
            continue
        if fault["call"] == call and fault.get("times", 1) > 0:
            fault["times"] = fault.get("times", 1) - 1
            return fault
    return None


def error(call: str, code: str, message: str, status: int) -> tuple[int, list[tuple[str, str]], bytes]:
    """In the shape of the service's protocol."""
    service = call.partition(".")[0]
    if service in ("ec2", "s3", "sts"):
        inner = f"<Code>{code}</Code><Message>{message}</Message>"
        text = (
            f"<Response><Errors><Error>{inner}</Error></Errors><RequestID>refused</RequestID></Response>"
            if service == "ec2"
            else f"<Error>{inner}<RequestId>refused</RequestId></Error>"
        )
        return status, [("Content-Type", "text/xml")], text.encode()
    body = json.dumps({"__type": code, "message": message, "Message": message}).encode()
    return status, [("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-ErrorType", code)], body


class Front:
    """A WSGI application around moto's."""

    def __init__(self, moto: Any, control: Any) -> None:
        self.moto = moto
        self.control = control

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        path = environ.get("PATH_INFO", "/")
        if path.startswith(CONTROL):
            return self.control(environ, start)
        length = environ.get("CONTENT_LENGTH")
        # S3 bodies may be streamed in chunks of unknown number.
        chunked = environ.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked"
        stream = environ["wsgi.input"]
        body = stream.read() if chunked else stream.read(int(length or 0))
        environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(body), str(len(body))
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        environ.pop("wsgi.input_terminated", None)
        call, region, params = call_of(environ, body)
        entry = {"call": call, "region": region, "params": params, "bytes": len(body), "at": now_ms()}
        with LOCK:
            CALLS.add(entry)
            number = CALLS.counts[call]
            fault = fault_for(call)
            refused = SETTINGS.throttle and THROTTLE.refuses(call, region, params)
        hold(call, number)
        status, headers, content = self.answer(environ, call, entry, fault, refused)
        entry["status"] = status
        if status >= 300 and "code" not in entry:
            found = re.search(rb"<Code>([^<]+)|\"__type\": ?\"([^\"]+)", content)
            entry["code"] = (found[1] or found[2]).decode() if found else None
        if fault is not None and fault.get("how", "error").startswith("drop"):
            environ["werkzeug.socket"].shutdown(2)
            raise ConnectionAbortedError(f"{call} is not answered")
        if environ["REQUEST_METHOD"] != "HEAD" and status != 204:
            headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
            headers.append(("Content-Length", str(len(content))))
        start(f"{status} {'OK' if status < 300 else 'ERROR'}", headers)
        return [content]

    def answer(self, environ: Any, call: str, entry: Any, fault: Any, refused: bool) -> Any:
        if hides(call, entry["params"]):
            return 200, [("Content-Type", "text/xml")], f"<{call[4:]}Response/>".encode()
        if fault is not None and fault.get("how", "error") != "drop-answer":
            if fault.get("how") == "drop":
                return 503, [], b""
            return error(call, fault["code"], fault.get("message", "injected by the test"), fault.get("status", 400))
        if refused:
            code = "RequestLimitExceeded" if call.startswith("ec2.") else "RequestThrottledException"
            return error(call, code, "Request limit exceeded.", 503 if call.startswith("ec2.") else 400)
        if call == "pricing.GetProducts":
            content = json.dumps(prices.get_products(json.loads(environ["wsgi.input"].read()))).encode()
            return 200, [("Content-Type", "application/x-amz-json-1.1")], content
        told: dict[str, Any] = {}

        def start(status: str, headers: list[tuple[str, str]], _info: Any = None) -> None:
            told.update(status=int(status.split()[0]), headers=headers)

        # S3 keeps no common picture with the rest, and its bodies are large; a long poll waits for what others change.
        if call.startswith("s3.") or call == "sqs.ReceiveMessage":
            content = b"".join(self.moto(environ, start))
        else:
            with LOCK:
                content = b"".join(self.moto(environ, start))
        return told["status"], told["headers"], content
