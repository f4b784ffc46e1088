import { Controller, mayAct } from "@nodeyard/coordination";
import { leaked, type NodeUse, type Resource, resourceKey, type Tag } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { deadline, messageOf, NodeyardError } from "@nodeyard/runtime";
import type { NodeEntry, UnreadableEntry } from "@nodeyard/view";
import type { OpenProvider } from "../handles.ts";
import { nodeUse } from "../metastatic/backings.ts";
import { takeOut } from "../nodes/node-lock.ts";
import { tagOf } from "../nodes/tag.ts";
import type { ProviderHandles } from "./providers.ts";
import { machinesOf, vanished } from "./survey.ts";

/** Milliseconds between two sweeps of a provider. */
export const SWEEP_MS = 60_000;
/** Milliseconds for one sweep. A cloud that lists thousands of machines in pages may need most of it. */
const ANSWER_MS = 120_000;
/** Most nodes without a machine that one sweep deletes, because the cloud is asked once more for each. */
const VANISHED_AT_ONCE = 16;

/**
 * Compares a provider's machines with the records, in both directions (rule 5). A machine without a record is deleted: only with our
 * installation id, only when two sweeps saw it, only with a complete view, never more than the brake allows, and not while an unreadable
 * record may belong to this provider. A ready node without a machine is sent to its deletion.
 */
export function leakSweep(
  context: ProviderHandles,
  open: OpenProvider,
  onBrake: (brake: Brake | undefined) => void,
): Controller {
  const sweep = new LeakSweep(context, open, onBrake);
  return new Controller(context, {
    name: `leaks of ${open.config.name}`,
    site: "launcher/providers/leaks.ts",
    resyncMs: SWEEP_MS,
    reconcile: (stop) => sweep.look(stop),
  });
}

/** What a sweep does not delete, since it is too much at once: machines without a record, and nodes without a machine. */
export interface Brake {
  readonly leaked: number;
  readonly vanished: number;
}

class LeakSweep {
  readonly #context: ProviderHandles;
  readonly #open: OpenProvider;
  readonly #onBrake: (brake: Brake | undefined) => void;
  #braked: Brake = { leaked: 0, vanished: 0 };
  /**
   * Machines without a record in the last sweep. A record that the view did not show yet is there by the next sweep. Kept in this
   * process: after a restart a leaked machine stays one sweep longer.
   */
  #suspects: ReadonlySet<string> = new Set();
  /** Suspects whose deletion was requested, and counted. A cloud may take several sweeps to end a machine. */
  readonly #ending = new Set<string>();
  /** Nodes without a machine in the last sweep. */
  #missing: ReadonlySet<string> = new Set();
  /** Paths of the unreadable records that were logged last. */
  #suspendedBy = "";

  constructor(context: ProviderHandles, open: OpenProvider, onBrake: (brake: Brake | undefined) => void) {
    this.#context = context;
    this.#open = open;
    this.#onBrake = onBrake;
  }

  /** One sweep. A resource that it suspects is deleted by the next sweep that still suspects it. */
  async look(stop: AbortSignal): Promise<undefined> {
    const { view, clock, ages } = this.#context;
    const { name } = this.#open.config;
    if (!mayAct(this.#context)) return;
    const late = () =>
      new NodeyardError(
        "launcher.provider_silent",
        `provider ${name} did not list its resources within ${ANSWER_MS} ms`,
      );
    using limit = deadline(clock, ANSWER_MS, late, stop);
    // Before the call: a node that was made after this moment may be missing in the answer.
    const asked = ages.now();
    const resources = await this.#open.provider.list(limit.signal);
    // Meanwhile the view may have lost events: a record that it does not show may exist.
    if (!view.complete) return;
    await this.#removeLeaked(resources, limit.signal);
    await this.#takeOutVanished(resources, asked, limit.signal);
    await reconcileUses(this.#context, this.#open, limit.signal);
  }

  async #removeLeaked(resources: readonly Resource[], signal: AbortSignal): Promise<void> {
    const { view, log, counters } = this.#context;
    const { name } = this.#open.config;
    // Judged after the listing, like the records themselves.
    const unreadable = view.unreadable.ofProvider(name);
    if (unreadable.length > 0) return this.#suspend(unreadable);
    this.#suspendedBy = "";
    const sweep = leaked(resources, view.nodes.byProvider.get(name), {
      installation: this.#context.installation,
      provider: name,
      previous: this.#suspects,
      named: machinesOf(view.nodes.byId.values(), name),
    });
    this.#suspects = sweep.suspects;
    for (const key of this.#ending) if (!sweep.suspects.has(key)) this.#ending.delete(key);
    this.#brake("leaked", sweep.braked ? sweep.wouldRemove : 0);
    if (sweep.braked) {
      counters.add("launcher.leak_brake", 1, { provider: name });
      log.error(
        { provider: name, wouldDelete: sweep.wouldRemove, listed: resources.length },
        `a leak sweep would delete too much and deletes nothing: is this the right tree for this cloud? "nodeyard leaks" shows what`,
      );
      return;
    }
    for (const resource of sweep.remove) await this.#remove(resource, signal);
  }

  /** 0: the brake does not hold. */
  #brake(kind: keyof Brake, count: number): void {
    if (this.#braked[kind] === count) return;
    this.#braked = { ...this.#braked, [kind]: count };
    const holds = this.#braked.leaked + this.#braked.vanished > 0;
    this.#onBrake(holds ? this.#braked : undefined);
  }

  /** Suspends deletions: a machine without a readable record may belong to an unreadable one. */
  #suspend(unreadable: readonly UnreadableEntry[]): void {
    const { log, counters } = this.#context;
    const provider = this.#open.config.name;
    // Suspects must be seen by two sweeps again once the records can be read.
    this.#suspects = new Set();
    counters.add("launcher.sweeps_suspended", 1, { provider });
    const records = unreadable.map(({ path }) => path).sort();
    // One line of the log for the same records, not one a minute.
    if (records.join() === this.#suspendedBy) return;
    this.#suspendedBy = records.join();
    log.error(
      { provider, records },
      `a leak sweep deletes nothing while records that may belong to its provider cannot be read: repair them, or remove them with "nodeyard delete"`,
    );
  }

  /** Deletes one resource. A failure is logged, and the next sweep tries again: the resource stays suspected. */
  async #remove(resource: Resource, signal: AbortSignal): Promise<void> {
    const { log, counters, journal } = this.#context;
    const { name } = this.#open.config;
    // Before each deletion: the session may have ended since the sweep began.
    if (!mayAct(this.#context)) return;
    try {
      await this.#open.provider.removeResource(resource, signal);
      const key = resourceKey(resource);
      if (this.#ending.has(key)) return;
      this.#ending.add(key);
      counters.add("launcher.leaked", 1, { provider: name, type: resource.type });
      journal.write({
        event: "resource.leaked",
        node: resource.tag?.nodeId,
        facts: { provider: name, type: resource.type, id: resource.id },
      });
    } catch (error) {
      log.warn(
        { provider: name, type: resource.type, id: resource.id, error: messageOf(error) },
        "cannot delete a leaked resource",
      );
    }
  }

  async #takeOutVanished(resources: readonly Resource[], asked: number, signal: AbortSignal): Promise<void> {
    const { view, installation } = this.#context;
    const { name } = this.#open.config;
    const entries = [...view.nodes.byProvider.get(name)].map((id) => view.nodes.byId.get(id)!);
    const place = this.#open.provider.place?.();
    const context = { installation, provider: name, asked, previous: this.#missing, place };
    const gone = vanished(entries, resources, context);
    this.#missing = gone.suspects;
    this.#brake("vanished", gone.braked ? gone.wouldTakeOut : 0);
    if (gone.braked) {
      this.#context.counters.add("launcher.leak_brake", 1, { provider: name });
      this.#context.log.error(
        { provider: name, wouldDelete: gone.wouldTakeOut, listed: resources.length },
        `so many ready nodes have no machine in the list of their provider that none is deleted: is the list complete, and of the right account? "nodeyard leaks" shows which`,
      );
    }
    // Those that are left are still suspected by the next sweep.
    for (const entry of gone.nodes.slice(0, VANISHED_AT_ONCE))
      await this.#takeOut(entry, gone.ended.has(entry.id), signal);
  }

  /** Deletes a node whose machine is gone. A list of a cloud can be incomplete, so the machine is looked up once more by its tag and its id. */
  async #takeOut({ id, record }: NodeEntry, hasEnded: boolean, signal: AbortSignal): Promise<void> {
    const { log, counters, journal } = this.#context;
    const { name } = this.#open.config;
    if (!mayAct(this.#context)) return;
    const tag = tagOf(this.#context, { id, record });
    try {
      if (!hasEnded && (await this.#open.provider.find(tag, signal, record.externalId)) !== undefined) return;
      await takeOut(this.#context, id, "its machine is gone");
      const facts = { provider: name, server_id: record.externalId };
      counters.add("launcher.vanished", 1, { provider: name });
      journal.write({ event: "node.vanished", node: id, facts });
    } catch (error) {
      log.warn(
        { node: id, provider: name, error: messageOf(error) },
        "cannot delete a node whose machine is gone",
      );
    }
  }
}

/** Gives a driver the list of nodes in use, for drivers that treat idle machines differently (lending); most changes cause no call. */
async function reconcileUses(
  context: ProviderHandles,
  { provider, config }: OpenProvider,
  signal: AbortSignal,
): Promise<void> {
  const { handover } = provider.offers ?? {};
  try {
    await handover?.reconcile?.((tags) => usesOf(context, config.name, tags), signal);
  } catch (error) {
    const facts = { provider: config.name, error: messageOf(error) };
    context.log.warn(facts, "cannot notify a provider of how its nodes are used; the next sweep will retry");
  }
}

/**
 * One synchronization, and one read for each of the provider's own nodes. Asked for by the driver, with the tags of the machines that
 * it has.
 */
async function usesOf(
  { tree, installation }: ProviderHandles,
  provider: string,
  tags: readonly Tag[],
): Promise<ReadonlyMap<string, NodeUse>> {
  const ours = tags.filter((tag) => tag.installation === installation && tag.provider === provider);
  if (ours.length === 0) return new Map();
  await tree.sync(paths.nodes);
  return new Map(
    await Promise.all(ours.map(async ({ nodeId }) => [nodeId, await nodeUse(tree, nodeId)] as const)),
  );
}
