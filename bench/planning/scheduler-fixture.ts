import { decodeNode, decodeRequest, newComponent } from "@nodeyard/model";
import {
  type Action,
  createState,
  failureRule,
  type LocalPool,
  type Policy,
  reduce,
  type SchedulerEvent,
  type State,
} from "@nodeyard/scheduler";

const bytes = (value: object) => new TextEncoder().encode(JSON.stringify(value));

/** A pool of our launcher, in a cloud of its own. */
export function localPool(
  provider: string,
  labels: readonly string[],
  fields: Partial<LocalPool> = {},
): LocalPool {
  return {
    key: `${provider}/main`,
    id: `bench-${provider}`,
    provider,
    name: "main",
    labels: new Set(labels),
    priority: 100,
    limits: {},
    launches: true,
    needs: new Map(),
    unavailable: new Map(),
    images: new Map(),
    zones: [],
    ignoresQuota: false,
    inventory: new Map(),
    ...fields,
  };
}

function policyOf(pools: readonly LocalPool[]): Policy {
  return {
    pools,
    providers: new Map(
      pools.map(({ provider }) => [
        provider,
        { name: provider, maxConcurrency: Number.POSITIVE_INFINITY, quota: {} },
      ]),
    ),
    labels: new Map(),
    tenantLimits: new Map(),
    maxHoldAgeMs: Number.POSITIVE_INFINITY,
    maxStarting: 256,
    failures: failureRule(),
  };
}

/** A scheduler that receives changes one by one, as records of the tree. */
export class SchedulerFixture {
  readonly #state: State = createState();
  readonly #pools: ReadonlyMap<string, LocalPool>;

  constructor(pools: readonly LocalPool[]) {
    this.#pools = new Map(pools.map((pool) => [pool.key, pool]));
    this.tell({ type: "policy", policy: policyOf(pools) });
    for (const { key, id, provider, labels } of pools) this.component(key, id, provider, [...labels]);
    this.tell({ type: "complete", complete: true });
  }

  get requests(): number {
    return this.#state.requests.size;
  }

  get nodes(): number {
    return this.#state.nodes.size;
  }

  /** Runs turns until nothing is left to do; returns all actions. Throws errors of the scheduler. */
  tell(...events: SchedulerEvent[]): Action[] {
    const actions: Action[] = [];
    for (let next = events; ; next = [{ type: "tick" }]) {
      const output = reduce(this.#state, next, 0);
      for (const { error } of output.failures) throw error;
      actions.push(...output.actions);
      if (!output.more) return actions;
    }
  }

  component(key: string, id: string, providerName: string, labels: readonly string[], paused = false): void {
    const fields = { kind: "pool", hostname: "bench", id, providerName, supportedLabels: labels, paused };
    this.tell({
      type: "component",
      key,
      after: { key, kind: "pool", version: 0, record: newComponent(fields) },
    });
  }

  request(id: string, label: string, fields: object = {}): Action[] {
    const data = bytes({ state: "requested", state_time: 0, node_types: [label], ...fields });
    return this.tell({ type: "request", id, after: { id, version: 0, record: decodeRequest(id, data) } });
  }

  /** `locked`: by its present client. */
  node(
    id: string,
    place: { readonly pool: string; readonly label: string },
    state: string,
    locked: boolean,
    request: string | null = null,
  ): Action[] {
    const { provider, name } = this.#pools.get(place.pool)!;
    const data = bytes({
      ...{ state, state_time: 0, provider, pool: name, type: [place.label], allocated_to: request },
      resources: { instances: 1 },
    });
    const after = { id, version: 0, record: decodeNode(id, data), contenders: locked ? ["lock"] : [] };
    return this.tell({ type: "node", id, after });
  }

  gone(what: "node" | "request", id: string): Action[] {
    return this.tell({ type: what, id });
  }
}
