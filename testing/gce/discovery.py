"""Writes discovery.schema.json: the methods of Google's discovery documents that the double has, with the schemas that they name, without their
descriptions. `python3 discovery.py WHEEL`, with the wheel of google-api-python-client, as `pip download --no-deps google-api-python-client` gets it.
"""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any, Iterator

METHODS = {
    "compute": """
        disks.aggregatedList disks.delete disks.insert disks.list globalOperations.get globalOperations.wait images.delete images.deprecate
        images.get images.getFromFamily images.insert images.list images.setLabels instances.aggregatedList instances.delete instances.get
        instances.getSerialPortOutput instances.insert instances.list instances.resume instances.setLabels instances.setMetadata
        instances.stop instances.suspend machineTypes.get projects.get regions.get zoneOperations.get zoneOperations.wait zones.list
    """,
}
TEXTS = {"annotations", "description", "enumDescriptions", "enumDeprecated"}


def refs(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from refs(one)
    if isinstance(value, dict):
        for key, one in value.items():
            if key == "$ref" and isinstance(one, str):
                yield one
            else:
                yield from refs(one)


def bare(value: Any) -> Any:
    """Without texts. A property may have the name of one of them, and then it is an object."""
    if isinstance(value, list):
        return [bare(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: bare(one)
        for key, one in value.items()
        if key not in TEXTS or (isinstance(one, dict) and key != "annotations")
    }


def part(document: dict[str, Any], names: list[str]) -> dict[str, Any]:
    methods = {}
    for name in names:
        resource, method = name.split(".")
        methods[name] = document["resources"][resource]["methods"][method]
    todo, schemas = list(refs(methods)), {}
    while todo:
        name = todo.pop()
        if name not in schemas:
            schemas[name] = bare(document["schemas"][name])
            todo.extend(refs(schemas[name]))
    wanted = ("httpMethod", "parameters", "request", "response")
    return {
        "revision": document["revision"],
        "servicePath": document["servicePath"],
        "parameters": bare(document["parameters"]),
        "methods": {
            name: {"path": method.get("flatPath", method["path"]), **{key: bare(method[key]) for key in wanted if key in method}}
            for name, method in sorted(methods.items())
        },
        "schemas": dict(sorted(schemas.items())),
    }


with zipfile.ZipFile(sys.argv[1]) as wheel:
    folder = "googleapiclient/discovery_cache/documents"
    parts = {api: part(json.loads(wheel.read(f"{folder}/{api}.v1.json")), names.split()) for api, names in METHODS.items()}
source = f"{Path(sys.argv[1]).name}, (c) Google LLC, Apache License 2.0"
text = json.dumps({"source": source, **parts}, separators=(",", ":"), sort_keys=True)
Path(__file__).with_name("discovery.schema.json").write_text(text + "\n")
