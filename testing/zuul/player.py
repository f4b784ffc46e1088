"""Zuul's launcher, scheduler and executor for one node at a time, by Zuul's own classes: JSON commands in, JSON answers out.

Arguments: hosts, ca, cert, key.
"""
import configparser
import json
import logging
import sys
import threading
import time

from kazoo.exceptions import NoNodeError

from zuul import model
from zuul.driver.kubernetes.kubernetesmodel import KubernetesProviderNode
from zuul.launcher.client import LauncherClient
from zuul.lib import tracing
from zuul.zk import ZooKeeperClient
from zuul.zk.components import LauncherComponent
from zuul.zk.zkobject import ZKContext

logging.basicConfig(level=logging.CRITICAL)
tracing.Tracing(configparser.ConfigParser())
hosts, ca, cert, key = sys.argv[1:5]
client = ZooKeeperClient(hosts, timeout=20, tls_ca=ca, tls_cert=cert, tls_key=key)
client.connect()
context = ZKContext(client, None, None, logging.getLogger("player")).__enter__()
component = LauncherComponent(client, "player", version="14.3.0", connection_filter=["elsewhere"])
component.register()
component.state = component.RUNNING
launchers = LauncherClient(client, threading.Event(), component_info=component)
nodesets = {}


def request(label):
    """What the scheduler writes, then what a launcher does that accepts it."""
    asked = model.NodesetRequest.new(
        context, tenant_name="t1", pipeline_name="check", buildset_uuid="3f0c", job_uuid="77aa", job_name="unit",
        labels=[label], priority=200, request_time=time.time(), zuul_event_id="51b2")
    made = KubernetesProviderNode.new(
        context, label=label, connection_name="nodeyard", provider="main", max_ready_age=0, quota=model.QuotaInformation(instances=1))
    made.assign(context, asked.uuid, "t1", min_request_version=asked.getZKVersion() + 1)
    asked.addProviderNode(made)
    asked.updateAttributes(context, state=model.NodesetRequest.State.ACCEPTED)
    return {"request": asked.uuid, "node": made.uuid}


def node(uuid):
    try:
        found = model.ProviderNode.fromZK(context, model.ProviderNode._getPath(uuid))
        stat = client.client.get(model.ProviderNode._getPath(uuid))[1]
    except NoNodeError:
        return None
    return {"made": stat.ctime, "written": stat.mtime, "state": found.state, "request": found.request_id, "comment": found.comment, **found.getNodeData()}


def accept(uuid):
    """The executor: locks the nodes, deletes the request, and has them in use."""
    asked = model.NodesetRequest.fromZK(context, model.NodesetRequest._getPath(uuid))
    nodeset = model.NodeSet()
    for index, label in enumerate(asked.labels):
        nodeset.addNode(model.Node([f"n{index}"], label))
    launchers.acceptNodeset(asked, nodeset)
    launchers.useNodeset(nodeset)
    nodesets[uuid] = nodeset


def give_back(uuid):
    launchers.returnNodeset(nodesets.pop(uuid))


def cancel(uuid):
    launchers.deleteRequest(model.NodesetRequest.fromZK(context, model.NodesetRequest._getPath(uuid)))


def next_state(uuid, state, comment):
    found = model.ProviderNode.fromZK(context, model.ProviderNode._getPath(uuid))
    launchers.setNextNodeState(found, state, comment)


def min_ready(label, max_ready_age=3600):
    return KubernetesProviderNode.new(
        context, label=label, connection_name="nodeyard", provider="main", max_ready_age=max_ready_age).uuid


def paths():
    """What is left of nodes."""
    children = client.client.get_children
    return [name for kind in ("nodes", "locks") if client.client.exists(f"/zuul/nodes/{kind}")
            for name in children(f"/zuul/nodes/{kind}")]


def components(filters, api):
    component.connection_filter = filters
    component.model_api = api


commands = dict(request=request, node=node, accept=accept, give_back=give_back, cancel=cancel, next_state=next_state,
                min_ready=min_ready, paths=paths, components=components)
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    name, *rest = json.loads(line)
    try:
        print(json.dumps({"answer": commands[name](*rest)}), flush=True)
    except Exception as error:
        print(json.dumps({"error": repr(error)}), flush=True)
