import { findInstallation } from "@nodeyard/coordination";
import type { ComponentRecord } from "@nodeyard/model";
import type { Action, PlannedNode, SchedulerEvent, Verdict } from "@nodeyard/scheduler";
import { Live } from "@nodeyard/telemetry";
import { Fence } from "@nodeyard/tree";
import { type ComponentEntry, type RequestEntry, View, type ViewEvent } from "@nodeyard/view";
import { AgeClock } from "./age-clock.ts";
import type { Handles } from "./handles.ts";
import { Ledgers } from "./limits/ledger.ts";
import { Loop } from "./loop.ts";
import type { LauncherOptions } from "./options.ts";
import { policyOf } from "./parts.ts";
import { Serving } from "./providers/serving.ts";

/** What a launcher would do first with a request. `waits`: another launcher took it before; null: nothing had been decided by then. */
export type ShadowDecision =
  | {
      readonly kind: "accept";
      /** Key of the pool. */
      readonly pool: string;
      readonly nodes: readonly PlannedNode[];
      readonly zone: string | null;
    }
  | { readonly kind: "decline"; readonly reason: string }
  | { readonly kind: "waits"; readonly verdict: Verdict | null };

/** As for a launcher; what writes is left out. `tree` need not take writes. */
export type ShadowOptions = Pick<
  LauncherOptions,
  "tree" | "clock" | "random" | "scan" | "log" | "counters" | "identity" | "driverOf" | "config"
>;

/**
 * The scheduler of a launcher on a tree that others serve, for each request until it has decided. It writes nothing to the tree and does
 * nothing in clouds but to ask for facts. Its pools count as registered in place of those of other launchers that serve its providers. A
 * decision keeps its room until another launcher has begun with the request, whose nodes count from then on: so each decision is about the
 * tree as it is, not about one that this launcher would have made.
 */
export class Shadow {
  readonly view: View;
  readonly #decided: (request: string, decision: ShadowDecision) => void;
  readonly #loop: Loop;
  readonly #serving: Serving;
  readonly #providers: ReadonlySet<string>;
  /** Requests that no decision was reported of, and that nobody has begun with. */
  readonly #open = new Set<string>();
  /** Requests that the scheduler takes for handled. */
  readonly #handled = new Set<string>();
  /** Nodes that it takes for being changed by it: what the next news of each ends. */
  readonly #nodes = new Map<string, SchedulerEvent>();
  #tellScheduler: (event: ViewEvent) => void = () => {};
  #serves = false;

  /** Resolves when the tree is read and each provider has been tried once; decisions come from then on. Rejects with TreeError. */
  static async start(
    options: ShadowOptions,
    decided: (request: string, decision: ShadowDecision) => void,
    onView: (view: View) => void = () => {},
  ): Promise<Shadow> {
    // Only to know machines of ours by; of a tree without one there are none.
    const installation = (await findInstallation(options.tree)) ?? options.random.uuid();
    const shadow = new Shadow(options, installation, decided);
    onView(shadow.view);
    await shadow.view.start();
    await shadow.#serving.apply(options.config.providers);
    shadow.#serves = true;
    shadow.#tellComplete();
    return shadow;
  }

  private constructor(
    options: ShadowOptions,
    installation: string,
    decided: (request: string, decision: ShadowDecision) => void,
  ) {
    const { tree, clock, random, scan, log, counters, identity, config, driverOf } = options;
    this.#decided = decided;
    this.#providers = new Set(config.providers.map(({ name }) => name));
    this.view = new View({ tree, clock, random, log, counters });
    const ages = new AgeClock({ tree, clock });
    const journal = { write: () => {} };
    const live = new Live(clock);
    const handles: Handles = { tree, view: this.view, clock, random, log, journal, counters, live, ages };
    const hear = (take: (event: ViewEvent, isNew: boolean) => void) => {
      this.#tellScheduler = (event) => take(event, true);
    };
    this.#loop = new Loop({ ...handles, view: { follow: hear } });
    this.#loop.carriedOutBy((action) => this.#pretend(action));
    const fence = new Fence(tree, clock, random);
    this.#serving = new Serving({
      context: {
        ...handles,
        fence,
        ledgers: new Ledgers(handles),
        scan,
        installation,
        noteCaches: () => {},
        onStanding: () => {},
        purpose: "look",
      },
      registration: this.#registry(),
      identity,
      acts: false,
      driverOf,
      onChange: (locals) => this.#loop.push({ type: "policy", policy: policyOf({}, config, locals) }),
    });
    this.view.follow((event) => this.#onView(event));
  }

  async close(): Promise<void> {
    this.#loop.close();
    await this.#serving.close();
    await this.view.close();
  }

  /** Pools of the providers are registered for this scheduler alone. */
  #registry(): ConstructorParameters<typeof Serving>[0]["registration"] {
    const pools = new Map<string, ComponentEntry>();
    const set = (name: string, record: ComponentRecord | undefined) => {
      const key = `pool/shadow ${name}`;
      const before = pools.get(name);
      const after = record && { key, kind: "pool", record, version: 0 };
      if (after === undefined) pools.delete(name);
      else pools.set(name, after);
      this.#tellScheduler({ type: "component", key, before, after });
    };
    return {
      register: async (name, record) => set(name, record),
      unregister: async (name) => set(name, undefined),
      async update(name, patch) {
        const known = pools.get(name);
        if (known !== undefined) set(name, { ...known.record, ...patch });
      },
    };
  }

  #onView(event: ViewEvent): void {
    switch (event.type) {
      case "complete":
        return this.#tellComplete();
      case "component": {
        const { kind, record } = (event.after ?? event.before)!;
        // In its place stands a pool of this scheduler.
        if (kind === "pool" && this.#providers.has(record.providerName ?? "")) return;
        return this.#tellScheduler(event);
      }
      case "request":
        return this.#onRequest(event.id, event.before, event.after);
      case "node": {
        this.#tellScheduler(event);
        const ended = this.#nodes.get(event.id);
        this.#nodes.delete(event.id);
        if (ended !== undefined) this.#loop.push(ended);
        const request = event.after?.record.allocatedTo;
        const entry = request == null ? undefined : this.view.requests.byId.get(request);
        // The first node of a request that is pending shows that its launcher has begun.
        if (entry?.record.state === "pending" && event.before?.record.allocatedTo !== request)
          this.#onRequest(entry.id, entry, entry);
        return;
      }
      default:
        return this.#tellScheduler(event);
    }
  }

  #tellComplete(): void {
    this.#loop.push({ type: "complete", complete: this.#serves && this.view.complete });
  }

  /**
   * A Python launcher makes a request `pending` when it takes it, and may hold it for hours before it has room. Until there are nodes of it,
   * the scheduler sees it as waiting: whether it has room is what is to be found out.
   */
  #onRequest(id: string, before: RequestEntry | undefined, after: RequestEntry | undefined): void {
    const isBegun = this.view.nodes.byRequest.count(id) > 0;
    const { state } = after?.record ?? {};
    if (after !== undefined && (state === "requested" || (state === "pending" && !isBegun))) {
      if (before === undefined) this.#open.add(id);
      const record = { ...after.record, state: "requested" as const };
      this.#tellScheduler({ type: "request", id, before, after: { ...after, record } });
      // Its launcher has put it back: it stands in line again.
      if (state === "requested" && before?.record.state === "pending") this.#endHandling(id);
      return;
    }
    // Asked before the scheduler hears that the request is taken, which ends its verdict.
    if (this.#open.has(id)) this.#decide(id, { kind: "waits", verdict: this.#loop.verdict(id) ?? null });
    this.#tellScheduler({ type: "request", id, before, after });
    this.#endHandling(id);
  }

  #endHandling(id: string): void {
    if (this.#handled.delete(id)) this.#loop.push({ type: "handled", request: id });
  }

  /** The first decision counts. */
  #decide(id: string, decision: ShadowDecision): void {
    if (this.#open.delete(id)) this.#decided(id, decision);
  }

  /** Takes an action for begun. It ends when others have acted: with the next news of its node, or when the request is taken or gone. */
  #pretend(action: Action): void {
    switch (action.type) {
      case "accept": {
        const { request, pool, nodes, zone } = action;
        this.#handled.add(request);
        this.#loop.push({ type: "started", request });
        return this.#decide(request, { kind: "accept", pool, nodes, zone });
      }
      case "decline":
        this.#handled.add(action.request);
        return this.#decide(action.request, { kind: "decline", reason: action.reason });
      case "reset":
        return void this.#handled.add(action.request);
      case "delete":
        return void this.#nodes.set(action.node, { type: "deleted", node: action.node });
      case "deallocate":
        return void this.#nodes.set(action.node, { type: "deallocated", node: action.node });
      case "check":
        return void this.#nodes.set(action.node, { type: "checked", node: action.node });
      case "suspend": {
        const { node, label } = action;
        return void this.#nodes.set(node, { type: "suspended", node, label, refused: false });
      }
      case "pause":
        return this.#serving.setPaused(action.pool, action.paused);
      case "ask-quota":
        return this.#serving.askQuota(action.provider);
      // Min-ready requests are those of others; launches and slots follow accepted requests alone; and what is only reported.
      case "min-ready":
      case "launch":
      case "refuse-launch":
      case "slot":
      case "label-changed":
      case "budget-changed":
        return;
      default:
        // A new action that is forgotten here would never end.
        return action satisfies never;
    }
  }
}
