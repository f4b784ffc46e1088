import {
  type CreateOrder,
  type DriverContext,
  DriverError,
  type ExternalId,
  type InventoryItem,
  type LabelConfig,
  type Machine,
  type ProbeResult,
  type Provider,
  type Resource,
  type Resources,
  type Scanner,
  SharedValue,
  type Step,
} from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";
import type { StaticHost, StaticProviderConfig } from "./config.ts";
import { mismatch } from "./host-keys.ts";
import { machineOf, type PlacedHost, placedHosts } from "./hosts.ts";

type Scanned = Awaited<ReturnType<Scanner["scan"]>>;

/** Hosts that exist. It makes and unmakes nothing; it says which there should be, and whether they answer. */
export class StaticProvider implements Provider {
  readonly #config: StaticProviderConfig;
  readonly #context: Pick<DriverContext, "clock" | "scan">;
  readonly #hosts: ReadonlyMap<string, PlacedHost>;
  readonly #items: readonly InventoryItem[];
  readonly #scans = new Map<string, SharedValue<Scanned>>();
  readonly #closed = new AbortController();

  constructor(config: StaticProviderConfig, context: Pick<DriverContext, "clock" | "scan">) {
    this.#config = config;
    this.#context = context;
    this.#hosts = placedHosts(config);
    this.#items = Array.from(this.#hosts.values(), ({ item }) => item);
  }

  // biome-ignore lint/correctness/useYield: the contract's form; there is no step that could be taken.
  async *create(order: CreateOrder): AsyncGenerator<Step, Machine, void> {
    throw new DriverError(
      "configuration",
      `provider ${this.#config.name} launches nothing: label ${order.label.name} is served by the hosts of the file only`,
    );
  }

  async *remove(): AsyncGenerator<Step, void, void> {}

  async find(_tag: unknown, signal: AbortSignal): Promise<ExternalId | undefined> {
    this.#check(signal);
    return undefined;
  }

  async list(signal: AbortSignal): Promise<readonly Resource[]> {
    this.#check(signal);
    return [];
  }

  async removeResource(_resource: Resource, signal: AbortSignal): Promise<void> {
    this.#check(signal);
  }

  async quota(signal: AbortSignal): Promise<Resources> {
    this.#check(signal);
    return {};
  }

  async need(_label: LabelConfig, signal: AbortSignal): Promise<Resources> {
    this.#check(signal);
    return { instances: 1 };
  }

  inventory(): readonly InventoryItem[] {
    return this.#items;
  }

  async probe(item: InventoryItem, signal: AbortSignal): Promise<ProbeResult> {
    this.#check(signal);
    const placed = this.#hosts.get(item.key);
    if (placed === undefined) {
      return { alive: false, why: `${item.key} is not in the configuration of ${this.#config.name}` };
    }
    const { host } = placed;
    // Nobody asked for proof, so the host is left alone, whatever its connection type.
    if (!host.hostKeyChecking) return { alive: true, machine: machineOf(host, host.hostKeys, undefined) };
    let scanned: Scanned;
    try {
      scanned = await this.#scan(host, signal);
    } catch (error) {
      this.#check(signal);
      return { alive: false, why: messageOf(error) };
    }
    const where = `${host.name}:${host.connection.port}`;
    const why = hasKeys(host) ? mismatch(where, host.hostKeys, scanned.hostKeys) : undefined;
    return why === undefined
      ? { alive: true, machine: machineOf(host, scanned.hostKeys, scanned) }
      : { alive: false, why };
  }

  async close(): Promise<void> {
    this.#closed.abort(new DriverError("transient", `provider ${this.#config.name} is closed`));
    for (const scan of this.#scans.values()) scan.close();
  }

  /** One scan at a time per host and port, shared by all who ask meanwhile; never kept for later. */
  #scan(host: StaticHost, signal: AbortSignal): Promise<Scanned> {
    const { port } = host.connection;
    const target = { host: host.name, port, keys: hasKeys(host), timeoutMs: host.timeoutMs };
    const key = JSON.stringify(target);
    let scan = this.#scans.get(key);
    if (scan === undefined) {
      const { clock, scan: scanner } = this.#context;
      const load = (own: AbortSignal) => scanner.scan({ ...target, signal: own });
      // The scanner's own time-out ends a scan; this one only ends a wait in the scanner's queue.
      const loadMs = host.timeoutMs + QUEUE_MS;
      scan = new SharedValue({
        clock,
        load,
        what: `scan of ${host.name}:${port}`,
        freshMs: -1,
        staleMs: -1,
        loadMs,
      });
      this.#scans.set(key, scan);
    }
    return scan.get(signal);
  }

  #check(signal: AbortSignal): void {
    signal.throwIfAborted();
    this.#closed.signal.throwIfAborted();
  }
}

const QUEUE_MS = 60_000;

/** Connection types that speak SSH; any other only has a port. */
function hasKeys(host: StaticHost): boolean {
  return host.connection.type === "ssh" || host.connection.type === "network_cli";
}
