import {
  encodeLease,
  type Lease,
  type LeasePart,
  leasePath,
  leaseRequestor,
  type NodeRecord,
  partOf,
  paths,
} from "@nodeyard/model";
import { readNode, requestOfLease, requestPath } from "@nodeyard/operations";
import { defined, hexId } from "@nodeyard/runtime";
import { brokenRule, type GatheringSet, holdsAny, planSet, type SetFacts } from "@nodeyard/scheduler";
import type { OwnEntry, RequestEntry } from "@nodeyard/view";
import type { RecordHandles } from "../held-records.ts";
import { failLease, giveBack, holdNode, jobOf, withdraw } from "./lease-holds.ts";

/** A request that was written and is not seen for so long was deleted by hand, milliseconds: another one is written. */
const UNSEEN_MS = 60_000;

/** The pause before a node that the tree has and the view lacks is looked for again, milliseconds. */
const UNSEEN_NODE_MS = 1_000;

/** A set as it was seen last, with what of it concerns others. */
interface Seen extends GatheringSet {
  /** Versions of its records. */
  readonly at: string;
}

/**
 * Gathers the nodes of mixed sets, part by part (docs/design/mixed-sets.md). Every launcher does, without election: each step is one commit
 * that checks the version of the lease, so one launcher makes it, and any other goes on from there.
 */
export class MixedSets {
  readonly #context: RecordHandles;
  readonly #isLimited: SetFacts["isLimited"];
  readonly #wake: (id: string) => void;
  readonly #seen = new Map<string, Seen>();

  /** `isLimited`: whether a limit counts all nodes of a tenant. `wake`: lets a lease be looked at again. */
  constructor(context: RecordHandles, isLimited: SetFacts["isLimited"], wake: (id: string) => void) {
    this.#context = context;
    this.#isLimited = isLimited;
    this.#wake = wake;
  }

  /** One step of a lease that gathers. Returns after how many milliseconds to look again; Infinity: at an event. */
  async step(lease: Lease, entry: OwnEntry): Promise<number> {
    const { view, ages, log } = this.#context;
    const { set } = lease;
    // A later release has written more than this one understands: it carries the set out, or its time ends it.
    if (set === null) return Number.POSITIVE_INFINITY;
    const requests = [...view.requests.byRequestor.get(leaseRequestor(lease.id))].flatMap(
      (id) => view.requests.byId.get(id) ?? [],
    );
    const part = set.parts.find(({ asked }) => asked !== null);
    const request = requests.find(({ record }) => part && partOf(record)?.token === part.asked?.token);
    const self: GatheringSet = { lease, set, request: request?.record };
    this.#note(self, `${entry.version} ${request?.id} ${request?.version}`);
    if (set.yields) return this.#begin(lease, entry, requests);
    for (const stray of requests) if (stray !== request) await this.#withdrawStray(lease, entry, stray);
    if (part !== undefined && request?.record.state === "fulfilled") {
      await this.#hold(lease, entry, part, request);
      return Number.POSITIVE_INFINITY;
    }
    if (part !== undefined && request?.record.state === "failed") {
      await failLease(this.#context, lease, entry, `no pool could serve ${part.label}`, request.id);
      return Number.POSITIVE_INFINITY;
    }
    const now = ages.now();
    if (part?.asked != null && request === undefined) {
      const left = part.asked.at + UNSEEN_MS - now;
      if (left > 0) return left;
      log.warn({ lease: lease.id, label: part.label }, "the request for a part of a set is gone");
      await this.#write(lease, entry, { parts: withPart(set.parts, { ...part, asked: null }) });
      return Number.POSITIVE_INFINITY;
    }
    const plan = planSet(self, this.#seen.values(), this.#facts(now));
    switch (plan.do) {
      case "ask":
        await this.#ask(lease, entry, plan, now);
        break;
      case "fail":
        if (plan.gone !== undefined && (await this.#context.tree.stat(paths.node(plan.gone))) !== undefined)
          return UNSEEN_NODE_MS;
        await failLease(this.#context, lease, entry, plan.why, request?.id);
        break;
      case "yield":
        await this.#write(lease, entry, { yields: true });
        this.#context.journal.write({
          event: "lease.yielded",
          facts: { lease: lease.id, to: plan.to, ...jobOf(lease) },
        });
        break;
      case "wait":
        return plan.ms;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** The lease gathers no more. Those that waited for it are looked at again. */
  forget(id: string): void {
    const before = this.#seen.get(id);
    if (!this.#seen.delete(id) || before === undefined || !holdsAny(before.set)) return;
    for (const other of this.#seen.keys()) this.#wake(other);
  }

  /** Only a set that holds something, or did, is a reason for others to do anything. */
  #note(self: GatheringSet, at: string): void {
    const { id } = self.lease;
    const before = this.#seen.get(id);
    this.#seen.set(id, { ...self, at });
    if (before?.at === at || !(holdsAny(self.set) || (before && holdsAny(before.set)))) return;
    for (const other of this.#seen.keys()) if (other !== id) this.#wake(other);
  }

  #facts(now: number): SetFacts {
    const { view } = this.#context;
    const pools = [...view.components.values()].filter(({ kind }) => kind === "pool");
    return {
      offers: view.standings.offers(),
      registered: pools.map(({ record }) => ({
        provider: record.providerName ?? "",
        labels: record.supportedLabels,
      })),
      node: (id) => view.nodes.byId.get(id)?.record,
      isLimited: this.#isLimited,
      now,
    };
  }

  /** Writes the request for a part, in one commit with its token: however many launchers try, and whatever reply is lost, it is one request. */
  async #ask(
    lease: Lease,
    entry: OwnEntry,
    { label, places }: { readonly label: string; readonly places: LeasePlaces },
    now: number,
  ): Promise<void> {
    const { tree, random } = this.#context;
    const { set } = lease;
    const part = set?.parts.find((one) => one.label === label);
    if (set === null || part === undefined) return;
    const token = hexId(random);
    const parts = withPart(set.parts, { ...part, asked: { token, at: Math.round(now) } });
    const asks = { ...lease, labels: lease.labels.filter((one) => one === label) };
    const { project, branch } = set;
    await tree.commit([
      this.#op({ ...lease, set: { ...set, parts } }, entry),
      {
        op: "create",
        path: requestPath(set),
        data: requestOfLease(this.#context, asks, {
          ...(project !== null && { project }),
          ...(branch !== null && { branch }),
          part: { token, ...defined({ places }) },
        }),
        sequential: true,
      },
    ]);
  }

  /** Holds the nodes of a part, then notes them and deletes their request in one commit. With the last part the lease is granted in it. */
  async #hold(lease: Lease, entry: OwnEntry, part: LeasePart, { id, record }: RequestEntry): Promise<void> {
    const { tree, journal, log } = this.#context;
    const { set } = lease;
    if (set === null) return;
    let why: string | undefined;
    const nodes: { readonly label: string; readonly record: NodeRecord }[] = [];
    for (const node of record.nodes) {
      const held = await holdNode(this.#context, lease, entry, id, node);
      if (held === undefined) why = `node ${node} was gone before it was held`;
      else nodes.push({ label: part.label, record: held });
    }
    // As they are in the tree: the view may show them later than their lease.
    for (const { label, nodes: ids } of set.parts)
      for (const node of ids) {
        const found = await readNode(this.#context, node);
        if (found === undefined) why ??= `node ${node}, which it held, is gone`;
        else nodes.push({ label, record: found });
      }
    const parts = withPart(set.parts, { ...part, nodes: [...record.nodes], asked: null });
    const broken = brokenRule(set, nodes);
    if (broken !== undefined) why ??= `${part.label} came from a pool of another ${broken.fact}`;
    if (why !== undefined) {
      log.warn({ lease: lease.id, request: id, why }, "a set fails with nodes that were there");
      // Given back once the lease has failed: another launcher may have granted it with these nodes.
      return failLease(this.#context, { ...lease, set: { ...set, parts } }, entry, why, id);
    }
    const isWhole = parts.every(({ nodes: ids }) => ids.length > 0);
    const left = new Map(parts.map(({ label, nodes: ids }) => [label, [...ids]]));
    const granted = {
      state: "granted" as const,
      nodes: lease.labels.map((label) => left.get(label)!.shift()!),
    };
    await tree.commit([
      this.#op({ ...lease, ...(isWhole && granted), set: { ...set, parts } }, entry),
      { op: "delete", path: paths.request(id) },
    ]);
    const facts = { lease: lease.id, nodes: isWhole ? granted.nodes : record.nodes, ...jobOf(lease) };
    journal.write(
      isWhole
        ? { event: "lease.granted", request: id, facts: { ...facts, owner: lease.owner } }
        : { event: "lease.held", request: id, facts: { ...facts, label: part.label } },
    );
  }

  /**
   * Gives back all that the set holds, and lets it begin anew. From the commit that let it yield on, nobody holds another node for it: a hold
   * checks the version of the lease.
   */
  async #begin(lease: Lease, entry: OwnEntry, requests: readonly RequestEntry[]): Promise<number> {
    const parts = lease.set!.parts;
    for (const { id } of requests) await withdraw(this.#context, lease.id, id);
    await returnParts(this.#context, lease);
    const empty = parts.map(({ label }) => ({ label, nodes: [], asked: null }));
    await this.#write(lease, entry, { parts: empty, yields: false });
    return Number.POSITIVE_INFINITY;
  }

  /**
   * A request that is not the one asked for: of a part that was given up before the request was seen. The view may also show a request before
   * its lease: then the lease has another version by now.
   */
  async #withdrawStray(lease: Lease, entry: OwnEntry, { id }: RequestEntry): Promise<void> {
    const stat = await this.#context.tree.stat(leasePath(lease.id));
    if (stat?.version === entry.version) await withdraw(this.#context, lease.id, id);
  }

  async #write(lease: Lease, entry: OwnEntry, change: Partial<NonNullable<Lease["set"]>>): Promise<void> {
    const { path, version } = entry;
    const { data } = this.#op({ ...lease, set: { ...lease.set!, ...change } }, entry);
    await this.#context.tree.set(path, data, { version });
  }

  #op(lease: Lease, { path, data, version }: OwnEntry) {
    return { op: "set", path, data: encodeLease(lease, data), version } as const;
  }
}

type LeasePlaces = NonNullable<ReturnType<typeof partOf>>["places"];

function withPart(parts: readonly LeasePart[], part: LeasePart): readonly LeasePart[] {
  return parts.map((one) => (one.label === part.label ? part : one));
}

/** Gives back what a set holds. Nobody has used these nodes. */
export async function returnParts(context: RecordHandles, { id, set }: Lease): Promise<void> {
  for (const { nodes } of set?.parts ?? [])
    for (const node of nodes) await giveBack(context, id, node, "back");
}
