import type { Evidence, Resource } from "./contract.ts";
import type { ExternalId, Tag } from "./tags.ts";

/** The installation and the provider of a sweep, and its predecessor. */
export interface SweepContext {
  readonly installation: string;
  readonly provider: string;
  /** The suspects of the last sweep; empty for the first. */
  readonly previous: ReadonlySet<string>;
  /** Ids (`idText`) that records name. Such a resource is a node's, whatever its tag says by now. */
  readonly named?: ReadonlySet<string>;
}

/** What one sweep found. */
export interface LeakSweepResult {
  /** Pass to the next sweep as `previous`. */
  readonly suspects: ReadonlySet<string>;
  /** Resources that two sweeps in a row suspected: delete them now. Empty when `braked`. */
  readonly remove: readonly Resource[];
  /** So many suspects mean the wrong tree for this cloud rather than leaks. Nothing is deleted until an operator decides. */
  readonly braked: boolean;
  /** Number of resources that would be removed without the brake. */
  readonly wouldRemove: number;
}

/** Ids of the nodes that have a record: a set, or a map by id. */
export interface KnownNodes {
  has(nodeId: string): boolean;
}

/** Removals that are always allowed, and the share of the own resources above that. */
const BRAKE_LEAST = 3;
const BRAKE_SHARE = 0.1;
/** Most tags that `memoryEvidence` keeps by default; the oldest go first. */
const MOST_EVIDENCE = 20_000;

/**
 * Finds leaked resources (rule 5): those with a complete tag of this installation and provider, but without a record. All other
 * resources are ignored. A resource is removed only if two sweeps in a row found it, and at most max(3, 10 % of the own resources) at
 * once. `known` must be read from a complete view, after the list was requested: the record is written before the resource is created,
 * so a node whose resource is listed has its record by then.
 */
export function leaked(
  resources: readonly Resource[],
  known: KnownNodes | undefined,
  context: SweepContext,
): LeakSweepResult {
  const suspects = new Set<string>();
  const remove: Resource[] = [];
  let ours = 0;
  for (const resource of resources) {
    const { tag } = resource;
    if (tag === null || tag.installation !== context.installation || tag.provider !== context.provider)
      continue;
    ours++;
    if (known?.has(tag.nodeId) || context.named?.has(idText(resource.id))) continue;
    const key = resourceKey(resource);
    suspects.add(key);
    if (context.previous.has(key)) remove.push(resource);
  }
  const braked = tooMany(remove.length, ours);
  return { suspects, remove: braked ? [] : remove, braked, wouldRemove: remove.length };
}

/** Whether so many of `all` do not go wrong at once: rather is the tree not the one of this cloud, or the cloud's list is not complete. */
export function tooMany(count: number, all: number): boolean {
  return count > Math.max(BRAKE_LEAST, all * BRAKE_SHARE);
}

/** Identity of a resource within a provider. It includes the tag, so an id that the cloud reuses is a new suspect. */
export function resourceKey(resource: Resource): string {
  return `${resource.type} ${idText(resource.id)} ${resource.tag?.nodeId ?? ""}`;
}

/** A text for an id that does not depend on the order of its fields. */
export function idText(id: ExternalId): string {
  return typeof id === "string" ? id : JSON.stringify(sorted(id));
}

/** The value with the fields of all its objects in alphabetical order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]) => [name, sorted(inner)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

/** Evidence in memory, limited to the newest `most` tags: for tests, and for drivers without durable evidence. */
export function memoryEvidence(most = MOST_EVIDENCE): Evidence {
  const tags = new Map<string, Tag>();
  return {
    record(type, id, tag) {
      const key = `${type} ${id}`;
      tags.delete(key);
      tags.set(key, tag);
      if (tags.size > most) tags.delete(tags.keys().next().value!);
    },
    tagOf: (type, id) => tags.get(`${type} ${id}`) ?? null,
  };
}
