import { closeQuietly } from "@nodeyard/coordination";
import {
  type Driver,
  type ExternalId,
  guard,
  idText,
  leaked,
  type Place,
  type Provider,
  type ProviderConfig,
  placeText,
  type Resource,
  type Scanner,
  tooMany,
} from "@nodeyard/driver";
import { isSuspended, placeOf } from "@nodeyard/model";
import type { UnreadableNode } from "@nodeyard/operations";
import type { Difference } from "@nodeyard/operations/listing";
import { type Clock, deadline, inTime, NodeyardError, type Random } from "@nodeyard/runtime";
import { isElsewhere } from "@nodeyard/scheduler";
import type { Log } from "@nodeyard/telemetry";
import { mayBeOf, type NodeEntry } from "@nodeyard/view";

/**
 * What two sweeps of a provider would do if both saw this listing. `nodes` must be read after the listing began, at `asked` (tree
 * time, milliseconds). `unreadable`: nodes whose records cannot be read. Pure. The actions of a running launcher are shown with the same
 * functions, so the answer to "nodeyard leaks" cannot differ from the deletions.
 */
export function survey(
  provider: string,
  installation: string,
  resources: readonly Resource[],
  nodes: readonly NodeEntry[],
  asked: number,
  unreadable: readonly UnreadableNode[] = [],
  place?: Place,
): readonly Difference[] {
  const suspending = unreadable.filter((node) => mayBeOf(node.known, provider)).map(({ path }) => path);
  const known = new Set(nodes.filter(({ record }) => record.provider === provider).map(({ id }) => id));
  const context = { installation, provider, previous: new Set<string>(), named: machinesOf(nodes, provider) };
  // As if this were the first sweep, and then the second one with the same listing.
  const { suspects } = leaked(resources, known, context);
  const { remove, braked, wouldRemove } = leaked(resources, known, { ...context, previous: suspects });
  const going = new Set(remove);
  const found: Difference[] = [];
  for (const resource of resources) {
    const { type, id, tag } = resource;
    if (tag === null || tag.provider !== provider || known.has(tag.nodeId)) continue;
    if (unreadable.some((node) => node.id === tag.nodeId)) continue;
    const what = { provider, type, id, node: tag.nodeId };
    if (tag.installation !== installation) {
      found.push({
        ...what,
        kind: "foreign",
        action: "keep",
        why: `it belongs to installation ${tag.installation}`,
      });
    } else if (suspending.length > 0) {
      const why = `nothing is deleted while ${suspending.join(", ")} cannot be read: repair it, or remove it with "nodeyard delete"`;
      found.push({ ...what, kind: "leaked", action: "keep", why });
    } else if (going.has(resource)) {
      found.push({
        ...what,
        kind: "leaked",
        action: "delete",
        why: "it is ours, and there is no record of its node",
      });
    } else if (braked) {
      const why = `there is no record of its node, but ${wouldRemove} at once are too many: is this the right tree for this cloud?`;
      found.push({ ...what, kind: "leaked", action: "keep", why });
    }
  }
  const own = nodes.filter(({ record }) => record.provider === provider);
  const at = { ...context, asked, place };
  const look = vanished(own, resources, at);
  const second = vanished(own, resources, { ...at, previous: look.suspects });
  for (const node of second.nodes) found.push({ ...vanishedOf(provider, node), action: "take-out" });
  if (second.braked) {
    const taken = new Set(second.nodes.map(({ id }) => id));
    for (const node of own.filter((one) => isSuspect(one, look.suspects) && !taken.has(one.id)))
      found.push({
        ...vanishedOf(provider, node),
        action: "keep",
        why: `its machine is not listed, but ${second.wouldTakeOut} at once are too many: is the list complete, and of the right account?`,
      });
  }
  for (const { id, record } of own)
    if (isElsewhere(record, place) && !resources.some(({ tag }) => tag?.nodeId === id)) {
      const why = `its machine is in ${placeText(placeOf(record)!)}, and the provider works in ${placeText(place!)} now`;
      found.push(kept("elsewhere", record.provider!, id, record.externalId, why));
    }
  return found;
}

/** Ids of the machines that records of a provider name. */
export function machinesOf(nodes: Iterable<NodeEntry>, provider: string): Set<string> {
  const ids = new Set<string>();
  for (const { record } of nodes)
    if (record.provider === provider && record.externalId !== null) ids.add(idText(record.externalId));
  return ids;
}

function vanishedOf(provider: string, { id: node, record }: NodeEntry) {
  const id = record.externalId;
  const why = `it is ${isSuspended(record) ? "suspended" : "ready"}, and its machine is gone`;
  return { provider, kind: "vanished", type: "instance", id, node, why } as const;
}

/** The nodes of providers of which `isServed` says that nobody serves them. */
export function surveyLeft(
  nodes: readonly Pick<NodeEntry, "id" | "record">[],
  isServed: (provider: string) => boolean,
): readonly Difference[] {
  return nodes.flatMap(({ id, record: { provider, externalId } }) => {
    if (provider === null || isServed(provider)) return [];
    const why =
      "no launcher serves its provider: put that back into the configuration until its nodes are gone, or delete the machine by hand and give up the record: nodeyard delete NODE --forget";
    return [kept("left", provider, id, externalId, why)];
  });
}

/** A node that stays as it is until an operator does something. */
function kept(
  kind: "elsewhere" | "left",
  provider: string,
  node: string,
  id: ExternalId | null,
  why: string,
): Difference {
  return { provider, kind, type: "instance", id, node, action: "keep", why };
}

/** Limits for a person who waits for the answer, milliseconds. */
const OPEN_MS = 60_000;
const LIST_MS = 120_000;

/** Everything that a provider lists, for people who want to see it: nothing is changed. Rejects with the driver's error. */
export async function listResources(
  driver: Driver,
  config: ProviderConfig,
  handles: {
    readonly clock: Clock;
    readonly random: Random;
    readonly scan: Scanner;
    readonly log: Log;
    readonly installation: string;
  },
): Promise<{ readonly resources: readonly Resource[]; readonly place: Place | undefined }> {
  const { clock } = handles;
  const silent = (ms: number) =>
    new NodeyardError("launcher.provider_silent", `provider ${config.name} did not answer within ${ms} ms`);
  const close = (opened: Provider) => closeQuietly(handles, config.name, opened);
  const opening = driver.open(config, { ...handles, purpose: "look" });
  const provider = await inTime(
    clock,
    OPEN_MS,
    opening,
    () => silent(OPEN_MS),
    // Opened after the deadline: nobody uses it any more.
    (late) => void close(late),
  );
  using limit = deadline(clock, LIST_MS, () => silent(LIST_MS));
  try {
    const resources = await guard(provider, config, { clock, log: driver.log ?? handles.log }).list(
      limit.signal,
    );
    return { resources, place: provider.place?.() };
  } finally {
    await close(provider);
  }
}

/**
 * No list takes this long, milliseconds: a record of a later time than that was written by a clock that has been put back since, and says
 * nothing of whether the machine was there when the list was asked for. Two looks and a question of its own stand before it is taken out.
 */
const LISTED_MS = 150_000;

interface VanishedContext {
  readonly installation: string;
  readonly provider: string;
  /** Tree time, milliseconds, at which the list was asked for. */
  readonly asked: number;
  /** What the last look suspected; empty for the first. */
  readonly previous: ReadonlySet<string>;
  /** Where the list is from. A machine of another place cannot be in it. */
  readonly place?: Place | undefined;
}

interface Vanished {
  /** Hand to the next look as `previous`. */
  readonly suspects: ReadonlySet<string>;
  /** Suspected by two looks in a row; none of those that are only missing when `braked`. */
  readonly nodes: readonly NodeEntry[];
  /** So many are missing at once that the list rather lacks them: nothing is taken out for that. */
  readonly braked: boolean;
  /** Ids of those that the cloud lists as ended: no question to it is needed. */
  readonly ended: ReadonlySet<string>;
  /** How many would be taken out without the brake. */
  readonly wouldTakeOut: number;
}

/**
 * Ready and suspended nodes whose machine has vanished: the cloud lists it neither under our tag nor under the id of the record, or lists it as ended
 * although it is not suspended. Only unallocated nodes that were so before the listing began. A record whose id has another shape than the listed ids comes from
 * another driver, and proves nothing. Pure.
 */
export function vanished(
  nodes: Iterable<NodeEntry>,
  resources: readonly Resource[],
  { installation, provider, asked, previous, place }: VanishedContext,
): Vanished {
  const tags = new Set<string>();
  const ids = new Set<string>();
  const shapes = new Set<string>();
  // Listed as ended: that proves the end of a machine, which a gap in a list does not.
  const over = new Set<string>();
  for (const { type, id, tag, ended } of resources) {
    if (ended === true) {
      over.add(tag?.nodeId ?? idText(id));
      continue;
    }
    ids.add(idText(id));
    if (type === "instance") shapes.add(shapeOf(id));
    if (tag?.installation === installation && tag.provider === provider) tags.add(tag.nodeId);
  }
  const suspects = new Set<string>();
  const gone: NodeEntry[] = [];
  let all = 0;
  for (const entry of nodes) {
    all++;
    const { id, record } = entry;
    const { externalId } = record;
    if (externalId === null || !wasOffered(entry, asked)) continue;
    if (tags.has(id) || ids.has(idText(externalId)) || isElsewhere(record, place)) continue;
    // The machine of a suspended node is listed as one that has ended.
    if (isSuspended(record) && isAmong(over, entry)) continue;
    if (shapes.size > 0 && !shapes.has(shapeOf(externalId))) continue;
    // Also the time, so that a node that was used and is ready again needs two sweeps of its own.
    const key = suspectKey(entry);
    suspects.add(key);
    if (previous.has(key)) gone.push(entry);
  }
  const ended = gone.filter((entry) => isAmong(over, entry));
  const braked = tooMany(gone.length - ended.length, all);
  return {
    suspects,
    nodes: braked ? ended : gone,
    ended: new Set(ended.map(({ id }) => id)),
    braked,
    wouldTakeOut: gone.length,
  };
}

/** Ready or suspended since before the list was asked for, and nobody has it or is about to. */
function wasOffered({ record, contenders }: NodeEntry, asked: number): boolean {
  const since = (record.stateTime ?? 0) * 1000;
  if (since >= asked && since <= asked + LISTED_MS) return false;
  const isFree = record.state === "ready" || isSuspended(record);
  return isFree && record.allocatedTo === null && contenders.length === 0;
}

/** By the node that the machine is tagged with, or by its own id. */
function isAmong(listed: ReadonlySet<string>, { id, record: { externalId } }: NodeEntry): boolean {
  return listed.has(id) || (externalId !== null && listed.has(idText(externalId)));
}

function suspectKey({ id, record }: NodeEntry): string {
  return `${id} ${record.stateTime} ${record.externalId === null ? "" : idText(record.externalId)}`;
}

function isSuspect(node: NodeEntry, suspects: ReadonlySet<string>): boolean {
  return suspects.has(suspectKey(node));
}

/** Text, or the names of an object's members: ids of one driver have one form. */
function shapeOf(id: ExternalId): string {
  return typeof id === "string" ? "text" : Object.keys(id).sort().join();
}
