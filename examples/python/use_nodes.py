#!/usr/bin/env python3
"""Leases nodes by Nodeyard's REST API, runs a command, and gives the nodes back. Needs nothing but Python's standard library.

    NODEYARD_URL=http://127.0.0.1:8005 NODEYARD_TOKEN=... ./use_nodes.py ubuntu-noble ubuntu-noble -- make test

The command finds the nodes in NODEYARD_NODES, as JSON: id, interface_ip, connection_port, username, host_keys. When it fails, the nodes
are given back as dirty. When this program dies, they are returned one heartbeat later.
"""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

HEARTBEAT_SECONDS = int(os.environ.get("HEARTBEAT_SECONDS", "60"))
TRIES = 6
# A server pings an event stream every 15 s.
SILENT_SECONDS = 50


class Refused(Exception):
    """The server's answer: `code` is stable, the text says what to do."""

    def __init__(self, status, problem, retry_after):
        super().__init__(problem.get("detail", f"HTTP status {status}"))
        self.status = status
        self.retry_after = retry_after
        self.code = problem.get("code", "")


class Nodeyard:
    def __init__(self, url, token):
        self.url = url.rstrip("/")
        self.token = token

    def open(self, method, path, body=None, headers=None, timeout=30):
        """The open answer; raises Refused, or OSError where none came."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers or {})
        request.add_header("Authorization", "Bearer " + self.token)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            return urllib.request.urlopen(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            with error:
                try:
                    problem = json.load(error)
                except ValueError:
                    problem = {}
                raise Refused(error.code, problem, float(error.headers.get("Retry-After") or 0)) from None

    def call(self, method, path, body=None, headers=None, repeat=False, tries=TRIES, timeout=30):
        """The answer's JSON. With `repeat`, a call that may have been carried out is made again."""
        for attempt in range(tries):
            pause = min(5, 0.2 * 2**attempt)
            try:
                with self.open(method, path, body, headers, timeout) as reply:
                    text = reply.read()
                    return json.loads(text) if text else None
            except Refused as error:
                passing = error.status == 429 or (repeat and error.status in (502, 503, 504))
                if attempt + 1 == tries or not passing:
                    raise
                pause = max(pause, error.retry_after)
            except OSError:
                if attempt + 1 == tries or not repeat:
                    raise
            time.sleep(pause)

    def events(self, **query):
        """Pairs of an event's type and its data, for ever: what is cut off is resumed after the last event that came."""
        path = "/v1/events?" + urllib.parse.urlencode(query)
        last = None
        failures = 0
        while True:
            try:
                headers = {} if last is None else {"Last-Event-ID": last}
                with self.open("GET", path, headers=headers, timeout=SILENT_SECONDS) as stream:
                    fields = {}
                    for line in stream:
                        name, _, value = line.decode().rstrip("\n").partition(":")
                        if name:
                            fields[name] = value.removeprefix(" ")
                        elif line == b"\n":
                            last = fields.get("id", last)
                            if "data" in fields:
                                failures = 0
                                yield fields.get("event"), json.loads(fields["data"])
                            fields = {}
            except Refused as error:
                if error.status not in (429, 502, 503, 504):
                    raise
            except OSError as error:
                print(f"the event stream was cut: {error}", file=sys.stderr)
            failures += 1
            if failures > 12:
                raise OSError("no server sends events any more")
            time.sleep(min(10, 0.5 * 2**failures))


class Lease:
    """Nodes that are held as long as this process lives; `with` gives them back."""

    def __init__(self, yard, labels, for_seconds=3600):
        self.yard = yard
        self.verdict = "ok"
        # Set when nothing holds the nodes any more.
        self.lost = threading.Event()
        self.ended = threading.Event()
        body = {"labels": labels, "for_seconds": for_seconds, "heartbeat_seconds": HEARTBEAT_SECONDS}
        # One key for all tries of this request, so that it is made once.
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        self.row = yard.call("POST", "/v1/leases", body, headers, repeat=True)
        self.path = "/v1/leases/" + self.row["id"]
        self.heartbeats = threading.Thread(target=self.beat, daemon=True)
        self.heartbeats.start()

    def beat(self):
        heard = time.monotonic()
        pause = HEARTBEAT_SECONDS / 3
        while not self.ended.wait(pause):
            sent = time.monotonic()
            pause = 2
            try:
                self.yard.call("POST", self.path + "/heartbeat", tries=1, timeout=10)
                heard, pause = sent, HEARTBEAT_SECONDS / 3
            except Refused as error:
                if error.status in (404, 409):
                    self.lost.set()
                    return
            except OSError:
                pass
            if time.monotonic() - heard > HEARTBEAT_SECONDS:
                self.lost.set()
                return

    def nodes(self):
        """Waits until the nodes are ready, and says how to reach them."""
        seen = False
        for kind, data in self.yard.events(kinds="lease", id=self.row["id"]):
            if kind == "gap":
                seen = False
            elif kind == "put":
                seen = True
                self.row = data["row"]
            if kind == "remove" or (kind == "synced" and not seen) or self.row["state"] == "released":
                raise RuntimeError(f"lease {self.row['id']} ended before its nodes were ready")
            if self.row["state"] == "failed":
                raise RuntimeError(f"no pool can serve {self.row['labels']}; see: nodeyard explain {self.row['id']}")
            if self.row["state"] == "granted":
                return self.yard.call("GET", self.path + "/nodes", repeat=True)["items"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        try:
            # Twice is the same as once.
            self.yard.call("POST", self.path + "/release", {"verdict": self.verdict}, repeat=True)
        except Refused as error:
            if error.status not in (404, 409):
                raise


def main(words):
    if "--" not in words or words[0] == "--" or words[-1] == "--":
        sys.exit("usage: use_nodes.py LABEL... -- COMMAND [WORD...]")
    labels, command = words[: words.index("--")], words[words.index("--") + 1 :]
    yard = Nodeyard(os.environ["NODEYARD_URL"], os.environ["NODEYARD_TOKEN"])
    with Lease(yard, labels) as lease:
        nodes = lease.nodes()
        running = subprocess.Popen(command, env={**os.environ, "NODEYARD_NODES": json.dumps(nodes)})
        threading.Thread(target=lambda: lease.lost.wait() and running.terminate(), daemon=True).start()
        code = running.wait()
        if lease.lost.is_set():
            sys.exit(f"lease {lease.row['id']} is lost: its nodes may be another's already")
        if code != 0:
            lease.verdict = "dirty"
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
