import { seededRandom } from "@nodeyard/runtime";
import type { Action, LocalPool, ShareWeights } from "../src/index.ts";
import { node, policy, pool, request, SchedulerFixture } from "./world.ts";

/** Whose a request is, with its other fields. */
interface Asked {
  readonly tenant: string;
  readonly client?: string;
  readonly labels?: readonly string[];
  readonly relative?: number;
}

export function weightsOf(
  tenants: Readonly<Record<string, number>>,
  clients: Readonly<Record<string, number>> = {},
): ShareWeights {
  return { tenants: new Map(Object.entries(tenants)), clients: new Map(Object.entries(clients)) };
}

/** A launcher whose accepted requests have their nodes at once; users return them when the test says so. */
export class ShareWorld {
  readonly fixture: SchedulerFixture;
  /** Requests in the order in which they were served. */
  readonly served: string[] = [];
  readonly asked = new Map<string, Asked>();
  /** Nodes in use, with the request that each was given to. */
  readonly inUse = new Map<string, string>();
  readonly #pool: LocalPool;
  #numbers = 0;
  #nodes = 0;

  constructor(size: number, shares: ShareWeights | undefined, fields: Partial<LocalPool> = {}) {
    this.#pool = pool({ limits: { instances: size }, ...fields });
    this.fixture = new SchedulerFixture(policy([this.#pool], { shares }));
    if (!this.#pool.launches) this.#register(size);
  }

  ask(...all: readonly Asked[]): readonly string[] {
    const ids = all.map((asked) => {
      const id = `100-${String(++this.#numbers).padStart(10, "0")}`;
      this.asked.set(id, asked);
      return id;
    });
    this.#do(
      this.fixture.tell(...ids.map((id) => ({ type: "request" as const, id, after: this.#entry(id) }))),
    );
    return ids;
  }

  /** Nodes come back at the same moment: machines are deleted, and hosts register again. */
  giveBack(...ids: readonly string[]): void {
    for (const id of ids) this.inUse.delete(id);
    this.#do(this.fixture.tell(...ids.map((id) => ({ type: "node" as const, id }))));
    if (!this.#pool.launches) this.#register(ids.length);
  }

  /** Nodes of a tenant. */
  used(tenant: string): number {
    return [...this.inUse.values()].filter((id) => this.asked.get(id)!.tenant === tenant).length;
  }

  #register(hosts: number): void {
    const ids = Array.from({ length: hosts }, () => this.#nextNode());
    const after = (id: string) => node(id, { hostname: "host", slot: Number(id) });
    this.#do(this.fixture.tell(...ids.map((id) => ({ type: "node" as const, id, after: after(id) }))));
  }

  #nextNode(): string {
    return String(++this.#nodes).padStart(10, "0");
  }

  #entry(id: string) {
    const { tenant, client = tenant, labels = ["small"], relative = 0 } = this.asked.get(id)!;
    const fields = { node_types: labels, tenant_name: tenant, requestor: client };
    return request(id, { ...fields, relative_priority: relative });
  }

  /** Carries out what was decided, and what is decided upon that. */
  #do(actions: readonly Action[]): void {
    for (const action of actions) {
      if (action.type !== "accept") continue;
      this.served.push(action.request);
      const { tenant, client = tenant } = this.asked.get(action.request)!;
      const events = action.nodes.map((planned) => {
        const id = "reuse" in planned ? planned.reuse : this.#nextNode();
        this.inUse.set(id, action.request);
        const fields = { allocated_to: action.request, tenant_name: tenant, requestor: client };
        const after = node(id, { ...fields, state: "in-use", type: [planned.label], slot: Number(id) }, [
          "user",
        ]);
        return { type: "node" as const, id, after };
      });
      this.#do(
        this.fixture.tell(
          ...events,
          { type: "request", id: action.request },
          { type: "handled", request: action.request },
        ),
      );
    }
  }
}

/** Numbers from a seed: `pick(n)` is from 0 to n - 1. */
export function picker(seed: number): (n: number) => number {
  const random = seededRandom(seed);
  return (n) => Math.floor(random.float() * n);
}
