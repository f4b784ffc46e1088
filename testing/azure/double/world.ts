import type { Clock } from "@nodeyard/runtime";
import type { Refusal } from "./answers.ts";
import type { AzureSettings } from "./settings.ts";

// biome-ignore lint/suspicious/noExplicitAny: bodies of an API with hundreds of optional properties
export type Json = { [key: string]: any };

/** A resource as it is shown, with whose it is. */
export interface Stored {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  location?: string;
  zones?: readonly string[];
  tags?: Readonly<Record<string, string>>;
  managedBy?: string | undefined;
  properties: Json;
  sku?: Json;
  /** Goes with it, if that was asked for. */
  owner?: Stored;
  goesWithOwner?: boolean;
  madeAt: number;
  /** Monotonic time of its deletion, by which lists lag. */
  goneAt?: number;
}

/** Services of the types that are not of Microsoft.Compute. */
export const SERVICES: Readonly<Record<string, string>> = {
  networkInterfaces: "Microsoft.Network",
  publicIPAddresses: "Microsoft.Network",
  subnets: "Microsoft.Network",
};

/** Everything in one subscription. Ids are compared in lower case, as Azure does. */
export class World {
  readonly clock: Clock;
  settings: AzureSettings;
  readonly subscription: string;
  /** Why machines have failed. */
  readonly failures = new WeakMap<Stored, Refusal>();
  /** Machines that have no host. They count for the quota as before. */
  readonly deallocated = new WeakSet<Stored>();
  /** Number of the operation that changes a machine. */
  readonly turns = new WeakMap<Stored, number>();
  readonly #all = new Map<string, Stored>();
  readonly #gone: Stored[] = [];
  #count = 0;

  constructor(clock: Clock, settings: AzureSettings, subscription: string) {
    this.clock = clock;
    this.settings = settings;
    this.subscription = subscription;
  }

  idOf(group: string, type: string, name: string): string {
    const service = SERVICES[type] ?? "Microsoft.Compute";
    return `/subscriptions/${this.subscription}/resourceGroups/${group}/providers/${service}/${type}/${name}`;
  }

  make(group: string, type: string, name: string, body: Json, id = this.idOf(group, type, name)): Stored {
    const service = SERVICES[type] ?? "Microsoft.Compute";
    const { properties, ...rest } = body;
    const stored: Stored = {
      ...structuredClone(rest),
      ...{ id, name, type: `${service}/${type}`, madeAt: this.clock.monotonic() },
      properties: structuredClone(properties ?? {}),
    };
    this.#all.set(id.toLowerCase(), stored);
    return stored;
  }

  /** `at`: monotonic time. */
  delete(stored: Stored, at: number): void {
    stored.goneAt = at;
    if (this.#all.delete(stored.id.toLowerCase())) this.#gone.push(stored);
  }

  byId(id: string): Stored | undefined {
    return this.#all.get(id.toLowerCase());
  }

  find(group: string, type: string, name: string): Stored | undefined {
    return this.byId(this.idOf(group, type, name));
  }

  all(type: string): readonly Stored[] {
    return [...this.#all.values()].filter((one) => one.type.endsWith(`/${type}`));
  }

  in(group: string): readonly Stored[] {
    const root = `/subscriptions/${this.subscription}/resourceGroups/${group}/`.toLowerCase();
    return [...this.#all.values()].filter(({ id }) => id.toLowerCase().startsWith(root));
  }

  /** The resources of a type in a group as lists show them, which lag. */
  listed(group: string, type: string): readonly Stored[] {
    const { lagMs } = this.settings;
    const root = this.idOf(group, type, "").toLowerCase();
    const since = this.clock.monotonic() - lagMs;
    const present = [...this.#all.values()].filter(({ madeAt }) => lagMs === 0 || madeAt <= since);
    const past = this.#gone.filter(({ goneAt, madeAt }) => lagMs > 0 && goneAt! > since && madeAt <= since);
    return [...present, ...past].filter(({ id }) => id.toLowerCase().startsWith(root));
  }

  suffix(): string {
    return (0x1000_0000 + ++this.#count).toString(16);
  }

  uuid(): string {
    return `00000000-0000-4000-9000-${String(++this.#count).padStart(12, "0")}`;
  }

  address(version: string, kind: "public" | "private"): string {
    const n = ++this.#count;
    if (version === "IPv6") return `${kind === "public" ? "2603:1020" : "fd00:db8"}::${n.toString(16)}`;
    return `${kind === "public" ? "20.61" : "10.0"}.${(n >> 8) & 255}.${n & 255}`;
  }
}
