import { setTimeout as sleep } from "node:timers/promises";
import { type KazooProcess, startKazoo } from "../zookeeper/index.ts";

/**
 * Zuul with many jobs at once, by kazoo: one session, and a thread for each job. A job requests nodes, watches its request, locks its
 * nodes, uses them for a second and returns them (docs/contract/zuul.md).
 */
const SCRIPT = `
import uuid
zk = client(args[0], timeout=float(args[1]))
ended = []
asked = []

def record(path):
    return json.loads(zk.retry(zk.get, path)[0])

def change(path, **fields):
    data = {**record(path), **fields, "state_time": time.time()}
    zk.retry(zk.set, path, json.dumps(data).encode())

def wait(path, until):
    changed = threading.Event()
    while time.monotonic() < until:
        changed.clear()
        try:
            data, _ = zk.retry(zk.get, path, watch=lambda event: changed.set())
        except NoNodeError:
            return "vanished", {}
        found = json.loads(data)
        if found["state"] in ("fulfilled", "failed"):
            return found["state"], found
        changed.wait(10)
    return "still " + found["state"], found

def use(path, nodes):
    locks = []
    found = []
    for node in nodes:
        lock = zk.Lock("/nodepool/nodes/%s/lock" % node)
        lock.acquire(timeout=60)
        locks.append(lock)
        found.append(record("/nodepool/nodes/" + node))
        change("/nodepool/nodes/" + node, state="in-use")
    zk.retry(zk.delete, path)
    time.sleep(1)
    for node in nodes:
        change("/nodepool/nodes/" + node, state="used")
    for lock in locks:
        lock.release()
    return found

def ask(labels, tenant="t1"):
    return zk.retry(zk.create, "/nodepool/requests/200-", json.dumps({
        "requestor_data": {"build_set_uuid": uuid.uuid4().hex, "tenant_name": tenant, "pipeline_name": "check",
                           "job_uuid": uuid.uuid4().hex, "job_name": "unit", "span_info": None},
        "node_types": labels, "requestor": "zuul-system", "created_time": time.time(), "provider": None,
        "state": "requested", "state_time": time.time(), "relative_priority": 0,
        "event_id": uuid.uuid4().hex, "tenant_name": tenant}).encode(), sequence=True, makepath=True)

def job(labels, limit):
    started = time.monotonic()
    result = {"state": "died", "labels": labels, "nodes": []}
    try:
        path = ask(labels)
        result["request"] = path.rsplit("/", 1)[1]
        asked.append(result["request"])
        result["state"], found = wait(path, started + limit)
        if result["state"] == "fulfilled":
            result["nodes"] = use(path, found["nodes"])
            result["state"] = "used"
        elif result["state"] == "failed":
            zk.retry(zk.delete, path)
    except Exception as error:
        result["error"] = repr(error)
    result["ms"] = round((time.monotonic() - started) * 1000)
    ended.append(result)

def order(jobs, limit):
    for labels in jobs:
        threading.Thread(target=job, args=(labels, limit), daemon=True).start()
    return len(jobs)

commands = {"order": order, "ended": lambda: ended, "asked": lambda: asked, "children": lambda path: zk.get_children(path),
            "record": record, "ask": ask, "use": use, "erase": lambda path: zk.delete(path, recursive=True),
            "create": lambda path, data: zk.create(path, json.dumps(data).encode(), makepath=True)}
while True:
    name, *rest = hear()
    try:
        say({"answer": commands[name](*rest)})
    except Exception as error:
        say({"error": repr(error)})
`;

import { patient } from "../patience.ts";

const LOOK_MS = 2_000;

/** How a job ended. */
export interface Job {
  readonly request: string;
  readonly labels: readonly string[];
  /** "used": it got its nodes and returned them. */
  readonly state: string;
  readonly nodes: readonly Readonly<Record<string, unknown>>[];
  /** From its request to its end. */
  readonly ms: number;
  readonly error?: string;
}

export class Zuul {
  readonly #process: KazooProcess;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(hosts: string) {
    this.#process = startKazoo(SCRIPT, [hosts, "30"]);
  }

  /** Starts jobs, each with its labels; one that has no nodes after `limitMs` gives up. Resolves when all have ended. */
  async jobs(labels: readonly (readonly string[])[], limitMs: number): Promise<readonly Job[]> {
    const before = (await this.#ask<readonly Job[]>("ended")).length;
    await this.#ask("order", labels, patient(limitMs) / 1_000);
    for (;;) {
      const ended = await this.#ask<readonly Job[]>("ended");
      if (ended.length >= before + labels.length) return ended.slice(before);
      await sleep(LOOK_MS);
    }
  }

  /** Ids of all requests made. */
  asked(): Promise<readonly string[]> {
    return this.#ask("asked");
  }

  children(path: string): Promise<readonly string[]> {
    return this.#ask("children", path);
  }

  record(path: string): Promise<Readonly<Record<string, unknown>>> {
    return this.#ask("record", path);
  }

  /** Path of a new request of a tenant, which nobody waits for: its nodes stay with it until `use`. */
  ask(labels: readonly string[], tenant: string): Promise<string> {
    return this.#ask("ask", labels, tenant);
  }

  /** Uses the nodes of a fulfilled request for a second, and returns them. */
  use(request: string, nodes: readonly string[]): Promise<unknown> {
    return this.#ask("use", request, nodes);
  }

  /** Removes a record with everything below it, as somebody does by hand. */
  erase(path: string): Promise<unknown> {
    return this.#ask("erase", path);
  }

  create(path: string, fields: object): Promise<string> {
    return this.#ask("create", path, fields);
  }

  kill(): Promise<void> {
    return this.#process.kill();
  }

  /** One command at a time. */
  #ask<T>(...command: readonly unknown[]): Promise<T> {
    const answer = this.#turn.then(async () => {
      const said = (await this.#process.ask(command)) as { answer: T; error?: string };
      if (said.error !== undefined) throw new Error(`kazoo: ${said.error}`);
      return said.answer;
    });
    this.#turn = answer.catch(() => {});
    return answer;
  }
}
