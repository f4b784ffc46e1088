"""What is particular to one project: what goes wrong for it, and a log of what happened to it.

$STATE/projects/ID.faults.json is read again at every call, so that each test has faults of its own:

  {"spawn_delay": 3, "spawn_error_rate": 0.1, "spawn_error": "...",
   "destroy_delay": [1, 5], "destroy_error_rate": 1, "bind_error_rate": 1,
   "hosts": {"nodeyard-cmp2": {"spawn_error_rate": 1}},
   "api": [{"service": "nova", "method": "POST", "path": "/servers$",
            "delay": 2, "status": 503, "rate": 0.5}]}

$STATE/projects/ID.log.jsonl has one line for each call that nova answered, and for each server that stopped counting.
"""
import json
import os
import random
import time

FOLDER = os.environ.get('NODEYARD_PROJECTS', '')


def faults(project, host=None):
    try:
        with open('%s/%s.faults.json' % (FOLDER, project)) as f:
            all = json.load(f)
    except (OSError, ValueError):
        return {}
    return {**all, **all.get('hosts', {}).get(host, {})}


def note(project, **event):
    line = json.dumps({'at': time.time(), **event}) + '\n'
    with open('%s/%s.log.jsonl' % (FOLDER, project), 'a') as f:   # short appends are atomic
        f.write(line)


def delay(value):
    if isinstance(value, list):
        value = random.uniform(*value)
    if value:
        time.sleep(float(value))        # green in nova's services


def happens(rate):
    return random.random() < rate
