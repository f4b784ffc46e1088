import { type ComponentRecord, changeComponent, encodeComponent, newComponent, paths } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { type Tree, TreeError } from "@nodeyard/tree";
import type { Log } from "../telemetry/index.ts";

/** One znode under /nodepool/components that says what this process offers. */
interface Registered {
  record: ComponentRecord;
  path: string;
  version: number;
  epoch: number;
  /** Writes of one component follow each other. */
  tail: Promise<void>;
}

/**
 * Keeps the components of this process registered (spec zookeeper.md 2.7): before the first accept, again first thing
 * after a lost session, rewritten only when a value changes.
 */
export class Registration {
  readonly #tree: Tree;
  readonly #log: Log;
  readonly #hostname: string;
  readonly #components = new Map<string, Registered>();

  constructor(tree: Tree, log: Log, hostname: string) {
    this.#tree = tree;
    this.#log = log;
    this.#hostname = hostname;
  }

  /** Makes the three kind folders that every process ensures. */
  async prepare(): Promise<void> {
    for (const path of [
      "/nodepool",
      paths.components,
      ...["pool", "launcher", "builder"].map((kind) => `${paths.components}/${kind}`),
    ]) {
      await this.#tree.create(path).catch(ignoreExisting);
    }
  }

  async register(name: string, record: ComponentRecord): Promise<void> {
    const component: Registered = { record, path: "", version: 0, epoch: -1, tail: Promise.resolve() };
    this.#components.set(name, component);
    component.tail = this.#create(component);
    await component.tail;
  }

  /** Rewrites a component when `patch` changes anything. */
  update(name: string, patch: Partial<ComponentRecord>): Promise<void> {
    const component = this.#components.get(name);
    if (component === undefined) return Promise.resolve();
    component.tail = component.tail
      .then(() => this.#change(component, patch))
      .catch((error) => {
        this.#log.warn(
          { component: name, error: messageOf(error) },
          "could not update a component; the next session will",
        );
      });
    return component.tail;
  }

  /** After a lost session: everything again, under new sequence numbers. */
  async renew(): Promise<void> {
    const { epoch } = this.#tree.session();
    await Promise.all(
      [...this.#components.values()]
        .filter((component) => component.epoch !== epoch)
        .map((component) => this.#create(component)),
    );
  }

  async unregister(name: string): Promise<void> {
    const component = this.#components.get(name);
    if (component === undefined) return;
    this.#components.delete(name);
    await component.tail.catch(() => {});
    if (component.path !== "") await this.#tree.delete(component.path).catch(() => {});
  }

  names(): readonly string[] {
    return [...this.#components.keys()];
  }

  async #create(component: Registered): Promise<void> {
    const { epoch } = this.#tree.session();
    const prefix = `${paths.components}/${component.record.kind}/${this.#hostname}`;
    const made = await this.#tree.create(prefix, encodeComponent(component.record), {
      ephemeral: true,
      sequential: true,
    });
    component.path = made.path;
    component.version = 0;
    component.epoch = epoch;
  }

  async #change(component: Registered, patch: Partial<ComponentRecord>): Promise<void> {
    const next = changeComponent(component.record, patch);
    if (Buffer.compare(encodeComponent(next), encodeComponent(component.record)) === 0) return;
    component.record = next;
    if (component.epoch !== this.#tree.session().epoch) return;
    const stat = await this.#tree.set(component.path, encodeComponent(next), { version: component.version });
    component.version = stat.version;
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

function ignoreExisting(error: unknown): void {
  if (!(error instanceof TreeError) || error.code !== "tree.node_exists") throw error;
}
