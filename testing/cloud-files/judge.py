"""What the clouds' own Python clients read in the files beside this one, as JSON. Arguments: the client, and what to read with it."""
import json
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
client, name = sys.argv[1:]
if client == "openstack":
    from openstack.config import OpenStackConfig

    files = OpenStackConfig(config_files=[f"{here}/clouds.yaml"], secure_files=[f"{here}/secure.yaml"])
    cloud = files.get_one(name)
    said = {
        **{key: cloud.auth[key] for key in ("username", "password", "project_name")},
        "verify": cloud.config.get("verify", True),
        "default": cloud.get_default_network(),
        "nat_source": cloud.get_nat_source(),
        "nat_destination": cloud.get_nat_destination(),
    }
else:
    from kubernetes import client as api
    from kubernetes import config

    read = api.Configuration()
    config.load_kube_config(f"{here}/kubeconfig", context=name, client_configuration=read)
    said = {"authorization": read.get_api_key_with_prefix("authorization") or read.get_basic_auth_token()}
print(json.dumps(said, sort_keys=True))
