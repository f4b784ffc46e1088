import {
  type ComponentRecord,
  changeComponent,
  decodeComponent,
  encodeComponent,
  newComponent,
  paths,
} from "@nodeyard/model";
import { type Clock, messageOf, type Random, settledWithin } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import {
  ignoreExisting,
  orUndefined,
  retryInterrupted,
  type Stat,
  type Tree,
  TreeError,
} from "@nodeyard/tree";

/** Leaving politely is worth this much, milliseconds: the end of the session does it too. */
const LEAVE_MS = 2_000;

/** A znode under /nodepool/components with the offers of one pool or builder of this process. */
interface Registered {
  /** What the znode should say; changed before the tree is asked. */
  record: ComponentRecord;
  /** Of its znode; "" before the first creation, and another one in each session. */
  path: string;
  /** Of the znode as this process wrote it last. */
  version: number;
  /** The session in which the znode stands; -1: in none. */
  epoch: number;
  /** The epoch in which its creation was tried last. */
  tried: number;
  /** Writes of one component follow each other. */
  tail: Promise<void>;
}

/** A created znode; `data` is its content when it was found after a lost reply. */
interface Made {
  readonly path: string;
  readonly stat: Stat;
  readonly data?: Uint8Array;
}

export interface RegistrationHandles {
  readonly tree: Tree;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/**
 * Keeps the components of this process registered (docs/contract/records.md, "Component"): before the first accept, again first thing
 * after a lost session, rewritten only when a value changes.
 */
export class Registration {
  readonly #handles: RegistrationHandles;
  readonly #log: Log;
  readonly #hostname: string;
  /** By the name under which they were registered: a pool's id, or the kind of the process. */
  readonly #components = new Map<string, Registered>();

  constructor(handles: RegistrationHandles, hostname: string) {
    this.#handles = handles;
    this.#log = handles.log;
    this.#hostname = hostname;
  }

  /** Makes the three kind folders that every process ensures. */
  async prepare(): Promise<void> {
    for (const path of [
      "/nodepool",
      paths.components,
      ...["pool", "launcher", "builder"].map((kind) => `${paths.components}/${kind}`),
    ]) {
      await this.#handles.tree.create(path).catch(ignoreExisting);
    }
  }

  /**
   * Resolves when the component stands. Rejects when it cannot be created; it is then tried again with the next session, unless the
   * caller unregisters it.
   */
  async register(name: string, record: ComponentRecord): Promise<void> {
    const component: Registered = {
      record,
      path: "",
      version: 0,
      epoch: -1,
      tried: -1,
      tail: Promise.resolve(),
    };
    this.#components.set(name, component);
    await this.#enqueue(component, () => this.#create(component));
  }

  /** Rewrites a component when `patch` changes anything. */
  update(name: string, patch: Partial<ComponentRecord>): Promise<void> {
    const component = this.#components.get(name);
    if (component === undefined) return Promise.resolve();
    return this.#enqueue(component, () => this.#change(component, patch)).catch((error) => {
      this.#log.warn(
        { component: name, error: messageOf(error) },
        "cannot update a component; will retry at its next change or in the next session",
      );
    });
  }

  /** After a lost session: everything again, under new sequence numbers. */
  async renew(): Promise<void> {
    await Promise.all(
      [...this.#components.values()].map((component) =>
        this.#enqueue(component, async () => {
          if (component.epoch !== this.#handles.tree.session().epoch) await this.#create(component);
        }),
      ),
    );
  }

  /** Resolves when the component is gone, after two seconds at most. Never rejects; a name that is not registered is no error. */
  async unregister(name: string): Promise<void> {
    const component = this.#components.get(name);
    if (component === undefined) return;
    this.#components.delete(name);
    // All launchers would wait for a pool that is not served any more. Therefore the deletion is repeated until the component is gone,
    // also after this call has returned.
    const gone = component.tail
      .then(() => retryInterrupted(this.#handles, () => this.#remove(component)))
      .catch((error) =>
        this.#log.debug(
          { component: name, error: messageOf(error) },
          "cannot delete a component; it disappears with its session",
        ),
      );
    await settledWithin(this.#handles.clock, LEAVE_MS, gone);
  }

  async #remove({ path, epoch }: Registered): Promise<void> {
    const { tree } = this.#handles;
    if (path === "" || tree.session().epoch !== epoch) return;
    await orUndefined(tree.delete(path));
  }

  /** Runs `work` after all other work on the component. */
  #enqueue(component: Registered, work: () => Promise<void>): Promise<void> {
    const next = component.tail.then(work);
    component.tail = next.catch(() => {});
    return next;
  }

  /** Names of what is registered, or is to be. */
  names(): readonly string[] {
    return [...this.#components.keys()];
  }

  /** Makes the znode in the current session, or takes over the one that an unanswered attempt made. */
  async #create(component: Registered): Promise<void> {
    await retryInterrupted(this.#handles, async () => {
      const { tree } = this.#handles;
      const { epoch } = tree.session();
      // An earlier create may have succeeded without a reply, also in this session, because calls wait for the connection.
      const found = component.tried >= 0 ? await this.#find(component) : undefined;
      component.tried = epoch;
      const data = encodeComponent(component.record);
      const made: Made =
        found ?? (await tree.create(this.#prefix(component), data, { ephemeral: true, sequential: true }));
      component.path = made.path;
      component.version = made.stat.version;
      // A call that waited for the connection may have been sent in the session after the one it was made in.
      const session = tree.session();
      component.epoch = made.stat.ephemeralOwner === session.id ? session.epoch : epoch;
      if (made.data !== undefined && Buffer.compare(made.data, data) !== 0) await this.#write(component);
    });
  }

  #prefix({ record }: Registered): string {
    return `${paths.component(record.kind)}/${this.#hostname}`;
  }

  /** The znode of this component that our session has, if there is one: by owner and id, since its other values may have moved. */
  async #find({ record }: Registered): Promise<Made | undefined> {
    const { tree } = this.#handles;
    const parent = paths.component(record.kind);
    // The connection may be to another server now, which is behind.
    await tree.sync(parent);
    for (const name of await tree.children(parent)) {
      if (!name.startsWith(this.#hostname)) continue;
      const path = `${parent}/${name}`;
      const found = await orUndefined(tree.get(path));
      if (found?.stat.ephemeralOwner !== tree.session().id) continue;
      if (decodeComponent(found.data).id === record.id) return { path, ...found };
    }
    return undefined;
  }

  /** The record changes at once, so that a new session begins with it even if the write fails. */
  async #change(component: Registered, patch: Partial<ComponentRecord>): Promise<void> {
    const next = changeComponent(component.record, patch);
    if (Buffer.compare(encodeComponent(next), encodeComponent(component.record)) === 0) return;
    component.record = next;
    await retryInterrupted(this.#handles, () => this.#write(component));
  }

  /** Only this process writes its component. A changed version means that an earlier write succeeded and its reply was lost. */
  async #write(component: Registered): Promise<void> {
    const { tree } = this.#handles;
    if (component.epoch !== tree.session().epoch) return;
    const data = encodeComponent(component.record);
    const { path, version } = component;
    try {
      component.version = (await tree.set(path, data, { version })).version;
    } catch (error) {
      if (!(error instanceof TreeError) || error.code !== "tree.bad_version") throw error;
      const found = await tree.get(path);
      component.version = found.stat.version;
      if (Buffer.compare(found.data, data) !== 0)
        component.version = (await tree.set(path, data, { version: found.stat.version })).version;
    }
  }
}

/** A pool's component as it is first written. */
export function poolComponent(facts: {
  readonly hostname: string;
  readonly version: string;
  readonly id: string;
  readonly name: string;
  readonly provider: string;
  readonly labels: readonly string[];
  readonly priority: number;
}): ComponentRecord {
  return newComponent({
    kind: "pool",
    hostname: facts.hostname,
    state: "running",
    version: facts.version,
    id: facts.id,
    name: facts.name,
    providerName: facts.provider,
    supportedLabels: [...facts.labels],
    priority: facts.priority,
    paused: false,
  });
}
