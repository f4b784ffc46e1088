"""Zuul's own client of Nodepool's tree: asks for nodes all the time, until its input ends, and says how the requests ended.

One node of "la" is kept, so that the next request for it waits through the restarts; "lb" is asked for every half second.
"""
import configparser
import json
import queue
import sys
import threading
import time

from zuul import model
from zuul.lib import tracing
from zuul.zk import ZooKeeperClient
from zuul.zk.nodepool import NodeRequestEvent, ZooKeeperNodepool

PATIENCE_S = 120

# A request carries a span, which only a provider of traces can make.
tracing.Tracing(configparser.ConfigParser())
ended = queue.Queue()
client = ZooKeeperClient(sys.argv[1], timeout=40)
client.connect()
nodepool = ZooKeeperNodepool(
    client,
    enable_node_request_cache=True,
    node_request_event_callback=lambda request, event: event == NodeRequestEvent.COMPLETED and ended.put(request),
)


def ask(label):
    request = model.NodeRequest(
        "zuul-system", "uuid", "t1", "check", "job-uuid", "job", [label], None, 0, "event"
    )
    nodepool.submitNodeRequest(request, 100)
    return request.id


def wait_for(wanted, patience=PATIENCE_S):
    """The states of requests that have ended: at least of these, unless that takes too long."""
    states = {}
    end = time.monotonic() + patience
    while not ended.empty() or (set(wanted) - set(states) and time.monotonic() < end):
        try:
            request = ended.get(timeout=1)
            states[request.id] = request.state
        except queue.Empty:
            pass
    return states


def delete(request):
    client.client.delete(f"{nodepool.REQUEST_ROOT}/{request}", recursive=True)


holder = ask("la")
assert wait_for([holder]) == {holder: model.STATE_FULFILLED}
waiting = [ask("la"), ask("la")]
print("ready", flush=True)

over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
asked = []
states = {}
while not over.wait(0.5):
    asked.append(ask("lb"))
    # Its node is free again with the request, so that no limit is reached.
    for request, state in wait_for([], 0).items():
        states[request] = state
        delete(request)
states.update(wait_for(set(asked) - set(states)))
# The node of "la" serves those that waited, one after the other.
delete(holder)
for request in waiting:
    if request not in states:
        states.update(wait_for([request]))
    delete(request)
print(json.dumps({request: states.get(request, "waits") for request in waiting + asked}), flush=True)
