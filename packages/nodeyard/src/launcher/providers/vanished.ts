import { type ExternalId, idText, type Resource } from "@nodeyard/driver";
import type { NodeEntry } from "../../view/index.ts";

/**
 * No list takes this long, milliseconds: a record of a later time than that was written by a clock that has been put back since, and says
 * nothing of whether the machine was there when the list was asked for. Two looks and a question of its own stand before it is taken out.
 */
const LISTED_MS = 150_000;

export interface VanishedContext {
  readonly installation: string;
  readonly provider: string;
  /** Tree time, milliseconds, at which the list was asked for. */
  readonly asked: number;
  /** What the last look suspected; empty for the first. */
  readonly previous: ReadonlySet<string>;
}

export interface Vanished {
  /** Hand to the next look as `previous`. */
  readonly suspects: ReadonlySet<string>;
  /** Suspected by two looks in a row. */
  readonly nodes: readonly NodeEntry[];
}

/**
 * Nodes that are offered and whose machine the cloud does not list, or lists as ended: neither under our tag nor under the id of the record. Only
 * ready nodes that nobody has, and that were ready before the list was asked for. A record whose id has another shape than
 * those listed was made by something that names machines otherwise, and says nothing. Pure.
 */
export function vanished(
  nodes: Iterable<NodeEntry>,
  resources: readonly Resource[],
  { installation, provider, asked, previous }: VanishedContext,
): Vanished {
  const tags = new Set<string>();
  const ids = new Set<string>();
  const shapes = new Set<string>();
  for (const { type, id, tag, ended } of resources) {
    if (ended === true) continue;
    ids.add(idText(id));
    if (type === "instance") shapes.add(shapeOf(id));
    if (tag?.installation === installation && tag.provider === provider) tags.add(tag.nodeId);
  }
  const suspects = new Set<string>();
  const gone: NodeEntry[] = [];
  for (const entry of nodes) {
    const { id, record, contenders } = entry;
    const { externalId } = record;
    const offered = record.state === "ready" && record.allocatedTo === null && contenders.length === 0;
    const ready = (record.stateTime ?? 0) * 1000;
    if (!offered || externalId === null || (ready >= asked && ready <= asked + LISTED_MS)) continue;
    if (tags.has(id) || ids.has(idText(externalId))) continue;
    if (shapes.size > 0 && !shapes.has(shapeOf(externalId))) continue;
    const key = `${id} ${record.stateTime} ${idText(externalId)}`;
    suspects.add(key);
    if (previous.has(key)) gone.push(entry);
  }
  return { suspects, nodes: gone };
}

function shapeOf(id: ExternalId): string {
  return typeof id === "string" ? "text" : Object.keys(id).sort().join();
}
