import { type ComponentRecord, decodeNode, decodeRequest, newComponent } from "@nodeyard/model";
import type { ComponentEntry, NodeEntry, RequestEntry } from "@nodeyard/view";
import {
  type Action,
  createState,
  type Durations,
  failureRule,
  type LocalPool,
  type Policy,
  reduce,
  type SchedulerEvent,
  type State,
  type Verdict,
} from "../src/index.ts";

const bytes = (value: object) => new TextEncoder().encode(JSON.stringify(value));

export function request(id: string, fields: object = {}, version = 0): RequestEntry {
  const record = decodeRequest(
    id,
    bytes({ state: "requested", state_time: 0, node_types: ["small"], ...fields }),
  );
  return { id, record, version };
}

export function node(id: string, fields: object = {}, contenders: readonly string[] = []): NodeEntry {
  const record = decodeNode(
    id,
    bytes({
      state: "ready",
      state_time: 0,
      provider: "cloud",
      pool: "main",
      type: ["small"],
      resources: { instances: 1 },
      ...fields,
    }),
  );
  return { id, record, version: 0, contenders };
}

export function component(key: string, fields: Partial<ComponentRecord> = {}): ComponentEntry {
  const record = newComponent({
    hostname: "host",
    kind: "pool",
    id: `launcher-${key}`,
    providerName: "cloud",
    supportedLabels: ["small", "large"],
    ...fields,
  });
  return { key, kind: "pool", record, version: 0 };
}

export function pool(fields: Partial<LocalPool> = {}): LocalPool {
  const provider = fields.provider ?? "cloud";
  const name = fields.name ?? "main";
  return {
    key: `${provider}/${name}`,
    id: `launcher-${provider}/${name}`,
    provider,
    name,
    labels: new Set(["small", "large"]),
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

export function policy(pools: readonly LocalPool[], fields: Partial<Policy> = {}): Policy {
  const providers = new Map(
    pools.map(({ provider, launches }) => [
      provider,
      { name: provider, maxConcurrency: Number.POSITIVE_INFINITY, quota: {}, outlivesNodes: !launches },
    ]),
  );
  return {
    pools,
    providers,
    labels: new Map(),
    tenantLimits: new Map(),
    maxHoldAgeMs: Number.POSITIVE_INFINITY,
    maxStarting: 256,
    failures: failureRule(),
    ...fields,
  };
}

/** Durations that nobody has seen. */
export const unseen: Durations = {
  used: () => [],
  launched: () => [],
  leftOf: () => Number.POSITIVE_INFINITY,
};

/** A scheduler that is told things one after the other, with what it answered. */
export class SchedulerFixture {
  readonly state: State = createState();
  now = 0;
  /** By how much `now` went wrong: milliseconds that have not passed. */
  jumped = 0;

  constructor(
    given: Policy,
    registered: readonly ComponentEntry[] = given.pools.map((local) => componentOf(local)),
  ) {
    this.tell({ type: "policy", policy: given });
    for (const entry of registered) this.tell({ type: "component", key: entry.key, after: entry });
    this.tell({ type: "complete", complete: true });
  }

  /** Both clocks. */
  get at(): { readonly now: number; readonly steady: number } {
    return { now: this.now, steady: this.now - this.jumped };
  }

  /** Feeds events and turns until nothing is left to do; returns all actions. */
  tell(...events: SchedulerEvent[]): Action[] {
    const actions: Action[] = [];
    let output = reduce(this.state, events, this.now, this.now - this.jumped);
    actions.push(...output.actions);
    for (let turn = 0; output.more; turn++) {
      if (turn > 10_000) throw new Error("the scheduler never comes to rest");
      output = reduce(this.state, [{ type: "tick" }], this.now, this.now - this.jumped);
      actions.push(...output.actions);
    }
    return actions;
  }

  request(id: string, fields: object = {}, version = 0): Action[] {
    return this.tell({ type: "request", id, after: request(id, fields, version) });
  }

  node(id: string, fields: object = {}, contenders: readonly string[] = []): Action[] {
    return this.tell({ type: "node", id, after: node(id, fields, contenders) });
  }

  gone(what: "node" | "request", id: string): Action[] {
    return this.tell({ type: what, id });
  }

  /** Tree time goes wrong, or is put right. */
  jump(ms: number): void {
    this.now += ms;
    this.jumped += ms;
  }

  wait(ms: number): Action[] {
    this.now += ms;
    return this.tell({ type: "tick" });
  }

  verdicts(): ReadonlyMap<string, Verdict> {
    const { requests } = this.state;
    return new Map(
      [...requests.entries()].flatMap(({ id }) => {
        const verdict = requests.of(id)?.verdict;
        return verdict === undefined ? [] : [[id, verdict] as const];
      }),
    );
  }

  code(id: string): string | undefined {
    return this.state.requests.of(id)?.verdict?.code;
  }
}

export function componentOf(local: LocalPool): ComponentEntry {
  return component(local.key, {
    id: local.id,
    providerName: local.provider,
    name: local.name,
    supportedLabels: [...local.labels],
    priority: local.priority,
  });
}
