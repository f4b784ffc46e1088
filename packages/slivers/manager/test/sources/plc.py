"""A centre that answers GetSlivers with Python's own XML-RPC server: prints its port, then serves.

The session says what comes back: `good`, `fault`, or `other` (another node's reply). Sessions of GetSession serve one call.
"""

import hashlib
import hmac

from xmlrpc.client import Fault
from xmlrpc.server import SimpleXMLRPCServer

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f someone"
COUNT = [0]
SESSIONS = set()


def GetSession(auth):
    value = hmac.new(b"the key of node 7", b"[]", hashlib.sha1).hexdigest()
    if auth != {"AuthMethod": "hmac", "node_id": 7, "value": value}:
        raise Fault(103, "Failed to authenticate call")
    COUNT[0] += 1
    SESSIONS.add(f"made-{COUNT[0]}")
    return f"made-{COUNT[0]}"


def GetSlivers(auth):
    assert auth["AuthMethod"] == "session"
    if auth["session"] == "fault":
        raise ValueError("session has ended")
    if auth["session"].startswith("made-"):
        if auth["session"] not in SESSIONS:
            raise Fault(103, "Failed to authenticate call")
        SESSIONS.remove(auth["session"])
    COUNT[0] += 1
    slivers = [
        {
            "name": "site_exp",
            "slice_id": 42,
            "instantiation": "plc-instantiated",
            "expires": 2147483647,
            "keys": [{"key_type": "ssh", "key": KEY}],
            "attributes": [{"tagname": "cpu_share", "value": "3"}, {"tagname": "odd", "value": None}],
        },
        {"name": "site_lazy", "instantiation": "delegated", "keys": [], "attributes": []},
        {"name": "no_instantiation", "keys": [], "attributes": []},
    ]
    if COUNT[0] > 1:
        slivers = slivers[1:]
    return {
        "timestamp": 1162224834 + COUNT[0],
        "node_id": 8 if auth["session"] == "other" else 7,
        "hostname": "n1.example.org",
        "networks": [{"ip": "192.0.2.10", "is_primary": True, "bwlimit": None}],
        "initscripts": [],
        "slivers": slivers,
    }


server = SimpleXMLRPCServer(("127.0.0.1", 0), allow_none=True, logRequests=False)
server.register_function(GetSession)
server.register_function(GetSlivers)
print(server.server_address[1], flush=True)
server.serve_forever()
