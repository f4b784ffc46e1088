"""What a test can change while the server runs, and what it can read back: one object of each per process."""

import threading
import time
from collections import Counter, deque
from typing import Any

# EC2, EBS and import tasks change one picture of the account; moto itself takes no locks.
LOCK = threading.RLock()

DEFAULTS: dict[str, Any] = {
    # Milliseconds from a launch to "running", from a termination to "terminated", and until that is listed no more.
    "pendingMs": 0,
    "stoppingMs": 0,
    "forgetMs": 3_600_000,
    # So many looks at a new instance say that it does not exist.
    "invisible": 0,
    # Rules {zone, type, market, most}: at most so many instances at once; "*" stands for any.
    "capacity": [],
    # Values of Service Quotas by service and code; vCPUs, or TiB for volumes.
    "quotas": {
        "ec2": {"L-1216C47A": 100.0, "L-43DA4232": 100.0, "L-34B43A08": 100.0},
        "ebs": {"L-D18FCD1D": 100.0, "L-7A658B76": 100.0},
    },
    # Dollars an hour: by type, or by family for dedicated hosts; on the spot market by type and zone.
    "prices": {"t3.medium": 0.0416, "t3.large": 0.0832, "t3.xlarge": 0.1664, "m5": 5.069},
    "spotPrices": {"t3.medium": {"us-west-2a": 0.0125, "us-west-2b": 0.0131}},
    # Whether a launch beyond them is refused, as EC2 does.
    "enforce": False,
    # Token buckets of the EC2 and EBS APIs.
    "throttle": False,
    # Faults {call, code, status, message, times, how}: how is "error", "drop", "drop-answer" or "hold", with "after".
    "faults": [],
    # Descriptions of an import task that say "active"; tasks at once.
    "importSteps": 1,
    "importMost": 20,
    # Calls of CompleteSnapshot that say "pending"; milliseconds of a copy of an image.
    "completionCalls": 0,
    "copyMs": 0,
    # Blocks whose checksum is told wrong.
    "corruptBlocks": [],
    # A page of a listing has at most so many items, whatever the caller takes.
    "pageSize": 1000,
    # Each instance gets an address of its own beneath this prefix ("127.60.") instead of moto's.
    "addresses": None,
}


class Settings:
    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.reset()

    def reset(self) -> None:
        self.values = {key: value for key, value in DEFAULTS.items()}

    def change(self, values: dict[str, Any]) -> None:
        unknown = sorted(set(values) - set(DEFAULTS))
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(unknown)}")
        self.values = {**self.values, **values}

    def __getattr__(self, name: str) -> Any:
        return self.values[name]


class Calls:
    """Every call, with its parameters as they were sent and how it was answered."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.counts: Counter[str] = Counter()
        self.entries: deque[dict[str, Any]] = deque(maxlen=50_000)

    def add(self, entry: dict[str, Any]) -> None:
        self.counts[entry["call"]] += 1
        self.entries.append(entry)


def now_ms() -> float:
    return time.monotonic() * 1000


SETTINGS = Settings()
CALLS = Calls()
