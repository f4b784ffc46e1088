#!/usr/bin/env python3
"""An inventory for Ansible: the nodes of leases that are granted, by label.

NODEYARD_URL and NODEYARD_TOKEN say which Nodeyard. With NODEYARD_LEASES, ids with commas between, only the nodes of these leases.

    ansible-inventory -i nodeyard.py --graph
    ansible-playbook -i nodeyard.py site.yml
"""
import json
import os
import shlex
import sys
import urllib.error
import urllib.request


def get(path):
    request = urllib.request.Request(os.environ["NODEYARD_URL"].rstrip("/") + path)
    if token := os.environ.get("NODEYARD_TOKEN"):
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)


def leases():
    wanted = os.environ.get("NODEYARD_LEASES")
    query = f"state=granted&limit=1000{f'&id={wanted}' if wanted else ''}"
    cursor = ""
    while cursor is not None:
        page = get(f"/v1/leases?{query}{f'&cursor={cursor}' if cursor else ''}")
        yield from page["items"]
        cursor = page["next"]


def variables(node, lease):
    found = {
        "ansible_host": node["interface_ip"],
        "ansible_port": node["connection_port"],
        "ansible_user": node["username"],
        "ansible_connection": node["connection_type"],
        "nodeyard_lease": lease["id"],
        "nodeyard_job": (lease["job"] or {}).get("id"),
        "nodeyard_provider": node["provider"],
    }
    # No other machine at this address is let in. The key comes from the command line, so that no file has to be kept.
    keys = sorted(node["host_keys"], key=lambda key: not key.startswith("ssh-ed25519"))
    if node["connection_type"] == "ssh" and keys:
        port = node["connection_port"]
        name = node["interface_ip"] if port == 22 else f"[{node['interface_ip']}]:{port}"
        known = f"KnownHostsCommand=/bin/echo {name} {keys[0]}"
        options = [known, "UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=yes"]
        found["ansible_ssh_common_args"] = " ".join(f"-o {shlex.quote(option)}" for option in options)
    return {key: value for key, value in found.items() if value is not None}


def inventory():
    groups, hosts = {}, {}
    for lease in leases():
        for node in get(f"/v1/leases/{lease['id']}/nodes")["items"]:
            name = f"node-{node['id']}"
            hosts[name] = variables(node, lease)
            for label in node["label"]:
                # Names of groups are names of variables.
                group = "".join(c if c.isalnum() else "_" for c in label)
                groups.setdefault(group, {"hosts": []})["hosts"].append(name)
    return {**groups, "_meta": {"hostvars": hosts}}


try:
    # `--host NAME` is never asked when _meta has all variables.
    print(json.dumps(inventory() if "--host" not in sys.argv else {}, indent=2))
except (KeyError, urllib.error.URLError) as error:
    sys.exit(f"nodeyard.py: cannot read the leases: {error}; NODEYARD_URL and NODEYARD_TOKEN say of which Nodeyard")
