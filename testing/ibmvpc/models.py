"""Writes models.json: what IBM's SDK for Python (ibm-vpc) knows of the bodies and answers that the double uses. `python3 models.py FOLDER`, of the unpacked wheel."""

import inspect
import json
import re
import sys
import types
from pathlib import Path

folder = Path(sys.argv[1])
# The module alone, without what it calls with.
for name in ("ibm_cloud_sdk_core", "ibm_cloud_sdk_core.authenticators", "ibm_cloud_sdk_core.authenticators.authenticator",
             "ibm_cloud_sdk_core.get_authenticator", "ibm_cloud_sdk_core.utils", "dateutil", "dateutil.parser"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__getattr__ = lambda attribute: type(attribute, (), {})
package = types.ModuleType("ibm_vpc")
package.__path__ = [str(folder / "ibm_vpc")]
sys.modules["ibm_vpc"] = package
common = types.ModuleType("ibm_vpc.common")
common.get_sdk_headers = None
sys.modules["ibm_vpc.common"] = common
import ibm_vpc.vpc_v1 as sdk  # noqa: E402

ROOTS = (Path(__file__).parent / "double/models.ts").read_text()
MODELS = {name: one for name, one in inspect.getmembers(sdk, inspect.isclass) if one.__module__ == sdk.__name__}


def word(annotation):
    """`[T]` for a list; a word or the name of a model otherwise; models that are one of several are named by all of them."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    text = str(annotation) if "[" in str(annotation) else text
    text = text.replace("typing.", "").replace("ForwardRef(", "").replace(")", "").replace("'", "")
    while (inner := re.fullmatch(r"Optional\[(.*)\]|(.*) \| None", text)):
        text = inner[1] or inner[2]
    if (inner := re.fullmatch(r"[Ll]ist\[(.*)\]", text)):
        return f"[{word(inner[1])}]"
    return text.removeprefix("datetime.").removeprefix("ibm_vpc.vpc_v1.")


def properties(model):
    """Names as on the wire, which the SDK reads with `.get("...")`; what its constructor has no default for is needed."""
    arguments = {name.rstrip("_"): one for name, one in inspect.signature(model.__init__).parameters.items() if name != "self"}
    wire = re.findall(r"args\['(\w+)'\] = .*?_dict\.get\('([\w-]+)'\)|\(\w+ := _dict\.get\('([\w-]+)'\)\)", inspect.getsource(model.from_dict))
    names = {(one[1] or one[2]) for one in wire} or set(arguments)
    return {
        name: [word(one.annotation), one.default is inspect.Parameter.empty]
        for name in sorted(names)
        if (one := arguments.get(name)) is not None
    }


def children(name):
    return [one for one in MODELS if name in [base.__name__ for base in MODELS[one].__mro__[1:]]]


schema, left = {}, re.findall(r"\b[A-Z][A-Za-z]+\b", ROOTS)
while left:
    name = left.pop()
    if name in schema or name not in MODELS:
        continue
    left += children(name)
    if hasattr(MODELS[name], "from_dict"):
        schema[name] = properties(MODELS[name])
    else:
        schema[name] = {}
    for kind, _ in schema[name].values():
        left.append(kind.strip("[]"))
for model in schema.values():
    for found in model.values():
        inner = found[0].strip("[]")
        several = children(inner) if inner in MODELS else []
        if several:
            found[0] = found[0].replace(inner, "|".join([inner, *several] if schema[inner] else several))
schema = {name: one for name, one in schema.items() if one}
(Path(__file__).parent / "models.json").write_text(json.dumps(dict(sorted(schema.items())), indent=1) + "\n")
