import {
  type CreateOrder,
  DriverError,
  type Machine,
  MIN_READY,
  machineMetadata,
  type Resources,
  type Step,
  type StepContext,
  sameNode,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import type { Edit, NodeReport, SliverReport, SliverSpecInput } from "@nodeyard/sliver-protocol";
import { needOf } from "./amounts.ts";
import { demandOwnCaches, leaves, leaving, volumesOf } from "./caches.ts";
import type { SliverProviderConfig } from "./config.ts";
import { lends, lendTags, rest, wake } from "./lending/index.ts";
import { externalId, type Place, placeOf, sliverName } from "./names.ts";
import { killsText } from "./remarks.ts";
import { type SliverSettings, specOf } from "./rspec.ts";
import type { Door, SliverHost } from "./sliver-host.ts";
import type { Placed, SliverHosts, Wish } from "./sliver-hosts.ts";

/** Time limit of a step that a machine carries out at once, milliseconds. */
const STEP_MS = 60_000;
/** Time limit until a sliver and everything of it is gone, milliseconds. */
const END_MS = 300_000;
/** The manager retries by itself. After this many failures the launch is given up. */
const TRIES = 3;

/**
 * Makes one sliver: chooses a machine, adds the sliver to the machine's document and waits until it runs. `now` in milliseconds.
 *
 * It may be called again for the same order after a crash or a lost answer, with the id that the first call saved. Then it continues on
 * the same machine, and a sliver that is in the document already is left as it is. Throws DriverError: "quota" where no machine has
 * room, "configuration" and "transient" by the machine's own error.
 */
export async function* createSteps(
  hosts: SliverHosts,
  { launchTimeoutMs }: SliverProviderConfig,
  order: CreateOrder,
  context: StepContext,
  now: () => number,
): AsyncGenerator<Step, Machine, void> {
  const { signal } = context;
  const name = sliverName(order.tag);
  const need = needOf(order.label);
  const own = order.label.own as SliverSettings;
  yield { step: "machine", deadlineMs: STEP_MS };
  const user = { installation: order.tag.installation, label: order.label.name, request: order.request };
  const wish = { name, need, volumes: volumesOf(own.caches, user) };
  const { place, host, placed } = await choose(hosts, wish, context, now);
  try {
    const id = externalId(place);
    // The id is saved before the document is written, so that a crash in between leaves no sliver that nothing names.
    yield {
      step: "document",
      deadlineMs: STEP_MS,
      ...(id === context.externalId ? {} : { save: { externalId: id } }),
    };
    const tags = { ...machineMetadata(order.tag), ...(own.lends ? lendTags(own.rspec) : {}) };
    const spec = specOf(own, place, tags, order.traceparent, user);
    const add: Edit = (slivers) => {
      if (!slivers.has(name)) slivers.set(name, spec);
    };
    // The answer says whether this sliver was refused, although the document as a whole was taken.
    granted(await host.changeOfPool(add, signal), name);
  } finally {
    placed();
  }

  yield { step: "start", deadlineMs: launchTimeoutMs };
  const sliver = await host.until((report) => running(report, name), signal);
  if (own.lends && order.request.requestor === MIN_READY) {
    yield { step: "lend", deadlineMs: STEP_MS };
    // If lending fails, the next reconciliation tries again.
    await host.changeOfPool(rest(name), signal).catch(() => signal.throwIfAborted());
  }
  return describe(order, { ...place, generation: sliver.generation }, host.door(sliver), need);
}

/**
 * Removes the tag's sliver. The tag identifies it; a stored id of the same sliver tells on which machine it is. Without such an id
 * every machine is asked, and one that does not answer fails the removal: the sliver could be there. Its end is waited for, so that its
 * amounts are free when the node is gone.
 */
export async function* removeSteps(
  hosts: SliverHosts,
  tag: Tag,
  context: StepContext,
): AsyncGenerator<Step, void, void> {
  const { signal, externalId: stored } = context;
  const name = sliverName(tag);
  const known = placeOf(stored);
  const where = known?.name === name ? [hosts.get(known.machine)] : hosts.all;
  if (context.returned !== undefined) {
    yield { step: "caches", deadlineMs: STEP_MS };
    await Promise.all(where.map((host) => leaveCaches(host, name, context)));
  }
  yield { step: "document", deadlineMs: STEP_MS };
  await Promise.all(where.map((host) => unlist(host, tag, signal)));

  yield { step: "end", deadlineMs: END_MS };
  const without = (report: NodeReport) => (gone(report, name) ? report : undefined);
  const reports = await Promise.all(where.map((host) => host.until(without, signal)));
  // Ended slivers are reported for a while. The remark says why the last job on the node may have failed.
  for (const { killed = [] } of reports) {
    const found = killed.find(
      (one) => one.name === name && (known?.generation ?? one.generation) === one.generation,
    );
    if (found !== undefined)
      yield { step: "tell", deadlineMs: STEP_MS, remark: killsText(found.memoryKills, found.memoryCap) };
  }
  // Lends what is free now, where slivers lend. The next change repeats it if it fails.
  for (const [at, host] of where.entries()) if (reports[at]?.slivers.some(lends)) host.relend();
}

/** Has a sliver's machine note which caches the sliver leaves. A sliver that does not run any more leaves none, and ends all the same. */
export async function leaveCaches(
  host: Pick<SliverHost, "status" | "changeOfPool" | "until">,
  name: string,
  context: StepContext,
): Promise<void> {
  const { signal } = context;
  try {
    const there = (await host.status(signal)).slivers.find((one) => one.name === name);
    if (there === undefined || !leaves(there, context)) return;
    await host.changeOfPool((slivers) => {
      const spec = slivers.get(name);
      if (spec !== undefined) slivers.set(name, leaving(spec, context));
    }, signal);
    await host.until((report) => noted(report, name), signal);
  } catch {
    signal.throwIfAborted();
  }
}

/** True when the sliver's machine has noted it, or will not: the end of a sliver that stands still must not wait for it. */
function noted({ slivers, trouble }: NodeReport, name: string): true | undefined {
  const sliver = slivers.find((one) => one.name === name);
  const isOver = sliver?.settled !== false || sliver.error !== undefined || trouble !== undefined;
  return isOver || (sliver.phase !== "running" && sliver.doing === undefined) ? true : undefined;
}

/** Where the tag's sliver is, by its stored id, else by the machines' documents; undefined: in none of these. */
export async function placed(
  hosts: SliverHosts,
  tag: Tag,
  { signal, externalId: stored }: StepContext,
): Promise<Place | undefined> {
  const name = sliverName(tag);
  const known = placeOf(stored);
  return known?.name === name ? known : await hosts.find(name, signal);
}

/**
 * Called before a ready node is delivered. Resolves when the kernel has given the sliver back what it lent; at once when it lends
 * nothing. Throws "not-found" when the sliver is gone, so that the node is not delivered.
 */
export async function handOver(hosts: SliverHosts, tag: Tag, context: StepContext): Promise<void> {
  const { signal } = context;
  const name = sliverName(tag);
  const place = await placed(hosts, tag, context);
  if (place === undefined)
    throw new DriverError("not-found", `sliver ${name} is in no document of the machines`);
  const host = hosts.get(place.machine);
  const there = (await host.status(signal)).slivers.find((one) => one.name === name);
  if (there === undefined)
    throw new DriverError("not-found", `sliver ${name} is in no document of machine ${host.name}`);
  demandOwnCaches(there, context);
  if (!lends(there)) return;
  await host.changeOfPool(wake(name), signal);
  await host.until((report) => settled(report, name), signal);
}

/** Removes the tag's sliver from the machine's document. Writes nothing when it is not there. */
export async function unlist(host: SliverHost, tag: Tag, signal: AbortSignal): Promise<void> {
  const name = sliverName(tag);
  const isOurs = (tags: SliverSpecInput["tags"]) => sameNode(tagOf(tags ?? {}), tag);
  const there = (await host.status(signal)).slivers.find((one) => one.name === name);
  if (there === undefined || !isOurs(there.tags)) return;
  await host.changeOfPool((slivers) => {
    // Checked again in the document that is written: it may be newer than the report.
    if (isOurs(slivers.get(name)?.tags)) slivers.delete(name);
  }, signal);
}

/** True when nothing of the sliver is left on the machine: a sliver that left the document is listed as `unlisted` until it has ended. */
export function gone({ slivers, unlisted }: NodeReport, name: string): true | undefined {
  return slivers.some((one) => one.name === name) || unlisted.includes(name) ? undefined : true;
}

/** The machine for a sliver, on which it counts until `placed`. The generation is the time in seconds: a name used again has a higher one. */
async function choose(
  hosts: SliverHosts,
  wish: Wish,
  { signal, externalId: stored }: StepContext,
  now: () => number,
): Promise<Placed & { readonly place: Place }> {
  const { name, need } = wish;
  // A stored id of another sliver is that of an earlier launch of the same node.
  const known = placeOf(stored);
  // The machine that an earlier call chose is kept: it may have taken the document although its answer was lost.
  if (known?.name === name) return { place: known, ...hosts.place(hosts.get(known.machine), name, need) };
  const { host, placed, generation = Math.floor(now() / 1000) } = await hosts.choose(wish, signal);
  return { place: { machine: host.name, name, generation }, host, placed };
}

/** Throws when the machine took the document but refused this sliver. */
export function granted({ refused, node }: NodeReport, name: string): void {
  const refusal = refused.find((one) => one.name === name);
  if (refusal === undefined) return;
  const kind = refusal.code === "capacity" ? "quota" : "configuration";
  throw new DriverError(kind, `machine ${node} refused the sliver: ${refusal.reason}`);
}

/**
 * The sliver when it runs, undefined while that may still come. Throws DriverError when waiting is of no use: the sliver is gone, its
 * error is HOPELESS, or it failed TRIES times.
 */
export function running({ slivers, node, trouble }: NodeReport, name: string): SliverReport | undefined {
  const sliver = slivers.find((one) => one.name === name);
  if (sliver === undefined)
    throw new DriverError("not-found", `the sliver ${name} was removed from the document of ${node}`);
  if (trouble !== undefined && trouble.attempts >= TRIES)
    throw new DriverError("transient", `machine ${node} cannot manage its slivers: ${trouble.message}`);
  const { error, phase } = sliver;
  if (error !== undefined && (error.attempts >= TRIES || HOPELESS[error.code] !== undefined))
    throw new DriverError(HOPELESS[error.code] ?? "transient", `machine ${node}: ${error.message}`);
  return phase === "running" && error === undefined ? sliver : undefined;
}

/** True when the sliver runs and its machine has applied the last change. Amounts that are taken back are applied before amounts that are given. */
export function settled(report: NodeReport, name: string): true | undefined {
  const sliver = running(report, name);
  return sliver === undefined || sliver.settled === false ? undefined : true;
}

/** Errors that a retry does not resolve, by their codes in the report (packages/slivers/manager/src/errors.ts). */
const HOPELESS: Readonly<Record<string, "configuration" | "quota">> = {
  "sliver.image": "configuration",
  "sliver.machine": "configuration",
  "sliver.pool_full": "quota",
  "sliver.no_place": "quota",
};

/** The machine that the launcher writes into the node's record. */
function describe(
  order: CreateOrder,
  place: Place,
  { address, port, user, published }: Door,
  resources: Resources,
): Machine {
  const isIpv4 = /^\d+(?:\.\d+){3}$/.test(address);
  return {
    externalId: externalId(place),
    interfaceIp: address,
    publicIpv4: published && isIpv4 ? address : null,
    privateIpv4: !published && isIpv4 ? address : null,
    hostname: order.hostname,
    hostId: place.machine,
    resources,
    // The machine assigns the user and port when it places the sliver, so they are known only now.
    connection: { username: user, port },
  };
}
