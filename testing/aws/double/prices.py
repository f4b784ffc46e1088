"""The Price List API, which moto has not, and prices of the spot market by zone."""

import json
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses import EC2Response
from settings import SETTINGS

NEW = "2026-01-01T00:00:00.000Z"


def get_products(params: dict[str, Any]) -> dict[str, Any]:
    """Of each type that the settings name one product of shared tenancy; of each host family one of dedicated hosts."""
    wanted = {one["Field"]: one["Value"] for one in params.get("Filters", []) if one["Type"] == "TERM_MATCH"}
    if params.get("ServiceCode") != "AmazonEC2":
        return {"FormatVersion": "aws_v1", "PriceList": []}
    found = []
    for kind, price in SETTINGS.prices.items():
        shared = {"operatingSystem": "Linux", "preInstalledSw": "NA", "tenancy": "Shared", "capacitystatus": "Used",
                  "licenseModel": "No License required"}  # fmt: skip
        own = shared if "." in kind else {"tenancy": "Host"}
        family = "Compute Instance" if "." in kind else "Dedicated Host"
        attributes = {"instanceType": kind, "regionCode": wanted.get("regionCode", ""), **own}
        if all({**attributes, "productFamily": family}.get(field) == value for field, value in wanted.items()):
            dimension = {"unit": "Hrs", "beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": f"{price:.10f}"}}
            terms = {"OnDemand": {"SKU.TERM": {"priceDimensions": {"SKU.TERM.RATE": dimension}, "termAttributes": {}}}}
            found.append(json.dumps({"product": {"productFamily": family, "attributes": attributes, "sku": "SKU"}, "terms": terms}))
    begin = int(params.get("NextToken") or 0)
    end = begin + SETTINGS.pageSize
    more = {"NextToken": str(end)} if end < len(found) else {}
    return {"FormatVersion": "aws_v1", "PriceList": found[begin:end], **more}


def describe_spot_price_history(self: Any) -> ActionResult:
    history = [
        {"InstanceType": kind, "ProductDescription": "Linux/UNIX", "SpotPrice": f"{price:.6f}", "AvailabilityZone": zone, "Timestamp": NEW}
        for kind, zones in SETTINGS.spotPrices.items()
        for zone, price in zones.items()
        if kind in self._get_param("InstanceTypes", [kind])
    ]
    return ActionResult({"SpotPriceHistory": history})


def install() -> None:
    EC2Response.describe_spot_price_history = describe_spot_price_history
