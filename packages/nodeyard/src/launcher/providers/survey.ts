import { type ExternalId, leaked, type Resource } from "@nodeyard/driver";
import type { UnreadableNode } from "../../operations/index.ts";
import { mayBeOf, type NodeEntry } from "../../view/index.ts";
import { vanished } from "./vanished.ts";

/** One difference between a cloud and the records, and what a sweep does about it. */
export interface Difference {
  readonly provider: string;
  /**
   * leaked: ours, and without a record. vanished: a ready node without a machine. foreign: of another installation with a
   * provider of this name.
   */
  readonly kind: "leaked" | "vanished" | "foreign";
  /** Type of the resource: "instance", "port". */
  readonly type: string;
  readonly id: ExternalId | null;
  readonly node: string;
  readonly action: "delete" | "take-out" | "keep";
  readonly why: string;
}

/**
 * What sweeps of a provider would do if they saw twice what is there now. `nodes` must be read after the list was asked for,
 * at `asked` (tree time, milliseconds). `unreadable`: nodes whose records cannot be read. Pure.
 */
export function survey(
  provider: string,
  installation: string,
  resources: readonly Resource[],
  nodes: readonly NodeEntry[],
  asked: number,
  unreadable: readonly UnreadableNode[] = [],
): readonly Difference[] {
  const suspending = unreadable.filter((node) => mayBeOf(node.known, provider)).map(({ path }) => path);
  const known = new Set(nodes.filter(({ record }) => record.provider === provider).map(({ id }) => id));
  const context = { installation, provider, previous: new Set<string>() };
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
  const look = vanished(own, resources, { ...context, asked });
  for (const { id, record } of vanished(own, resources, { ...context, asked, previous: look.suspects })
    .nodes) {
    const what = { provider, type: "instance", id: record.externalId, node: id };
    found.push({
      ...what,
      kind: "vanished",
      action: "take-out",
      why: "it is ready, and its machine is gone",
    });
  }
  return found;
}
