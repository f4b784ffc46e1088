import { patient } from "../patience.ts";
import { type KazooProcess, startKazoo } from "../zookeeper/index.ts";

/**
 * A Python client with kazoo that carries out one command after the other, in the part of Zuul, of a Python launcher, or of a person with
 * a shell. Locks are kazoo's own `Lock`, as Zuul and Nodepool use it.
 */
const SCRIPT = `
from kazoo.exceptions import LockTimeout
zk = client(args[0], timeout=float(args[1]))
locks = {}

def text(path):
    data, stat = zk.get(path)
    return {"data": data.decode(errors="replace"), "version": stat.version, "owner": stat.ephemeralOwner,
            "children": stat.numChildren}

def create(path, data="", ephemeral=False, sequence=False):
    return zk.create(path, data.encode(), ephemeral=ephemeral, sequence=sequence, makepath=True)

def lock(path, blocking=True, timeout=None):
    held = zk.Lock(path)
    try:
        if not held.acquire(blocking=blocking, timeout=timeout):
            return "busy"
    except LockTimeout:
        return "timeout"
    locks[path] = held
    return held.node

def unlock(path):
    locks.pop(path).release()

def acl(path):
    return [[a.perms, a.id.scheme, a.id.id] for a in zk.get_acls(path)[0]]

def store(path, data, version=-1):
    return zk.set(path, data.encode(), version).version

def fill(path, size):
    zk.create(path, b'{"state": "requested", "node_types": ["nowhere"], "requestor_data": "' + b"x" * size + b'"}',
              makepath=True, sequence=True)

commands = {
    "text": text, "create": create, "lock": lock, "unlock": unlock, "acl": acl, "store": store, "fill": fill,
    "children": lambda path: zk.get_children(path),
    "exists": lambda path: zk.exists(path) is not None,
    "delete": lambda path: zk.delete(path, recursive=True),
}
while True:
    name, *rest = hear()
    try:
        say({"answer": commands[name](*rest)})
    except Exception as error:
        say({"error": type(error).__name__})
`;

export interface Text {
  readonly data: string;
  readonly version: number;
  readonly owner: number;
  readonly children: number;
}

export type Fields = Record<string, unknown>;

const LOOK_MS = 25;
/**
 * Deadline for the reaction of a launcher, which may just have lost its session. Less than the minute after which a launcher compares
 * everything: that must not hide a missed event.
 */
const PATIENCE_MS = patient(45_000);
/** Timeout of a session that a test does not end: longer than client or server may stall. */
const SESSION_S = 40;
/** Timeout of a session that a test ends. */
export const SHORT_SESSION_S = 8;

/** A foreign client in a process of its own. */
export class Agent {
  readonly #process: KazooProcess;

  /** `timeoutS`: of its session. */
  constructor(hosts: string, timeoutS = SESSION_S) {
    this.#process = startKazoo(SCRIPT, [hosts, String(timeoutS)]);
  }

  text = (path: string) => this.#do<Text>("text", path);
  create = (path: string, data: unknown = "", ephemeral = false, sequence = false) =>
    this.#do<string>(
      "create",
      path,
      typeof data === "string" ? data : JSON.stringify(data),
      ephemeral,
      sequence,
    );
  /** Our contender's name; "busy" or "timeout" when the lock was not obtained. */
  lock = (path: string, blocking = true, timeoutS: number | null = null) =>
    this.#do<string>("lock", path, blocking, timeoutS);
  unlock = (path: string) => this.#do<null>("unlock", path);
  acl = (path: string) => this.#do<unknown[]>("acl", path);
  children = (path: string) => this.#do<string[]>("children", path);
  exists = (path: string) => this.#do<boolean>("exists", path);
  delete = (path: string) => this.#do<null>("delete", path);
  store = (path: string, fields: Fields, version = -1) =>
    this.#do<number>("store", path, JSON.stringify(fields), version);
  storeText = (path: string, data: string) => this.#do<number>("store", path, data);
  fill = (path: string, size: number) => this.#do<null>("fill", path, size);

  async record(path: string): Promise<Fields> {
    return JSON.parse((await this.text(path)).data) as Fields;
  }

  /** Reads the record, changes it, writes all of it back without a version check, as Zuul's executors do. */
  async change(path: string, fields: Fields): Promise<void> {
    await this.store(path, { ...(await this.record(path)), state_time: Date.now() / 1000, ...fields });
  }

  /** What Zuul writes when a job needs nodes (docs/contract/zuul.md, "Requesting"), to the letter. Returns the id. */
  async request(labels: readonly string[], fields: Fields = {}, priority = "200"): Promise<string> {
    const now = Date.now() / 1000;
    const path = await this.create(
      `/nodepool/requests/${priority}-`,
      {
        requestor_data: {
          build_set_uuid: "3f0c",
          tenant_name: "t1",
          pipeline_name: "check",
          job_uuid: "77aa",
          job_name: "unit",
          span_info: null,
        },
        node_types: labels,
        requestor: "zuul-system",
        created_time: now,
        provider: null,
        state: "requested",
        state_time: now,
        relative_priority: 0,
        event_id: "51b2",
        tenant_name: "t1",
        ...fields,
      },
      false,
      true,
    );
    return path.slice("/nodepool/requests/".length);
  }

  /** Waits until the request has this state; rejects with its state at the deadline. */
  async requestIs(id: string, state: string): Promise<Fields> {
    return this.recordBecomes(`/nodepool/requests/${id}`, (record) => record.state === state);
  }

  async recordBecomes(path: string, right: (record: Fields) => boolean): Promise<Fields> {
    let record: Fields | undefined;
    await this.#until(
      async () => {
        record = await this.record(path);
        return right(record);
      },
      () => `${path} is ${JSON.stringify(record)}`,
    );
    return record!;
  }

  async gone(path: string): Promise<void> {
    await this.#until(
      async () => !(await this.exists(path)),
      () => `${path} is still there`,
    );
  }

  kill(): Promise<void> {
    return this.#process.kill();
  }

  async #until(look: () => Promise<boolean>, describe: () => string): Promise<void> {
    const limit = performance.now() + PATIENCE_MS;
    while (!(await look())) {
      if (performance.now() > limit) throw new Error(`after ${PATIENCE_MS} ms ${describe()}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  async #do<T>(...command: readonly unknown[]): Promise<T> {
    const { answer, error } = (await this.#process.ask(command)) as { answer: T; error?: string };
    if (error !== undefined) throw new Error(`kazoo: ${error} at ${JSON.stringify(command).slice(0, 200)}`);
    return answer;
  }
}
