import type { Evidence, Resource } from "./contract.ts";
import type { ExternalId, Tag } from "./tags.ts";

/** Whose sweep it is. */
export interface SweepContext {
  readonly installation: string;
  readonly provider: string;
  /** What the last sweep suspected; empty for the first. */
  readonly previous: ReadonlySet<string>;
}

/** What one sweep found. */
export interface LeakSweepResult {
  /** Hand to the next sweep as `previous`. */
  readonly suspects: ReadonlySet<string>;
  /** Suspected by two sweeps in a row: to be deleted now. Empty when `braked`. */
  readonly remove: readonly Resource[];
  /** Too much at once: rather the wrong tree for this cloud than leaks. Nothing is deleted until a person looks. */
  readonly braked: boolean;
  /** How many would go without the brake. */
  readonly wouldRemove: number;
}

/** Node ids that have a record; a set, or a map by id. */
export interface KnownNodes {
  has(nodeId: string): boolean;
}

const BRAKE_LEAST = 3;
const BRAKE_SHARE = 0.1;
const MOST_EVIDENCE = 20_000;

/**
 * What a cloud has of ours without a record (rule 5). Ours is what carries our installation and provider, all of the
 * tag readable; everything else is not even counted. Deleted is only what two sweeps in a row found, and at most
 * max(3, 10 % of ours) at once. `known` must be read from a complete view, after the list was asked for: intent is recorded
 * before effect, so a node whose resource is listed has its record by then.
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
    if (known?.has(tag.nodeId)) continue;
    const key = resourceKey(resource);
    suspects.add(key);
    if (context.previous.has(key)) remove.push(resource);
  }
  const braked = remove.length > Math.max(BRAKE_LEAST, ours * BRAKE_SHARE);
  return { suspects, remove: braked ? [] : remove, braked, wouldRemove: remove.length };
}

/** Identity of a resource within a provider; the tag is part of it, so an id that the cloud reuses is a new suspect. */
export function resourceKey(resource: Resource): string {
  return `${resource.type} ${idText(resource.id)} ${resource.tag?.nodeId ?? ""}`;
}

/** One text per id, whatever the order of its fields. */
export function idText(id: ExternalId): string {
  return typeof id === "string" ? id : JSON.stringify(sorted(id));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]) => [name, sorted(inner)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

/** Evidence for as long as the process lives, the newest of it: for tests, and where nothing durable is handed out. */
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
