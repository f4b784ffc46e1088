import { MEMBERS } from "@nodeyard/asking";
import { isSuspended, leaseIdOf, metastaticProviderOf, type NodeRecord, paths } from "@nodeyard/model";
import { compareText } from "@nodeyard/runtime";
import { orUndefined } from "@nodeyard/tree";
import type { View } from "@nodeyard/view";
import type { OperationHandles } from "./handles.ts";
import { isMemberSession } from "./member-sessions.ts";

/** The two kinds of launchers. */
export type LauncherKind = "python" | "nodeyard";

/** Who holds a lock. `lease` and `backing` last without a session. */
export interface Holder {
  readonly kind: LauncherKind | "lease" | "backing" | "client";
  /** Host of a launcher, id of a lease, provider of a backing node; of other clients nothing is known. */
  readonly name: string;
}

/** What the tree says of a provider, as far as a change of its launcher depends on it. */
export interface TakeoverFacts {
  readonly provider: string;
  readonly pools: readonly {
    readonly kind: LauncherKind;
    readonly host: string;
    readonly name: string;
    readonly labels: readonly string[];
  }[];
  readonly nodes: readonly {
    readonly id: string;
    readonly state: NodeRecord["state"];
    readonly holder: Holder | null;
    readonly suspended: boolean;
    /** It is given to a request that is there. */
    readonly given: boolean;
  }[];
  /** Nodes that are or may be of the provider, and cannot be read. */
  readonly unreadable: readonly string[];
  /** Requests that only wait, and those that a launcher has taken; their labels are all of this provider, or it has nodes of theirs. */
  readonly waiting: readonly string[];
  readonly taken: readonly { readonly id: string; readonly holder: Holder | null }[];
  /** Of both, those that no pool of another provider has all labels of. */
  readonly onlyServedHere: readonly string[];
  /** Labels that nobody else offers, and Python pools of other providers. */
  readonly onlyHere: readonly string[];
  readonly otherPython: number;
  /** Nodes whose slots the provider gives out, and how many of these are taken. */
  readonly backings: readonly { readonly id: string; readonly taken: number; readonly slots: number }[];
  readonly uploads: number;
}

/** Reads what is wanted besides the view; writes nothing. `labels`: those that the configuration gives the provider. Rejects with TreeError. */
export async function takeoverFacts(
  { tree }: Pick<OperationHandles, "tree">,
  view: View,
  provider: string,
  labels: ReadonlySet<string>,
): Promise<TakeoverFacts> {
  const sessions = await launcherSessions(tree, view);
  const running = [...view.components.values()].filter(
    ({ kind, record }) => kind === "pool" && record.state !== "stopped",
  );
  const [own, others] = [
    running.filter(({ record }) => record.providerName === provider),
    running.filter(({ record }) => record.providerName !== provider),
  ];
  const pools = own.map(({ key, record }) => {
    // A component without a session is a dead launcher's; Nodeyard's are ephemeral.
    const kind = sessions.byKey.get(key) ?? "python";
    return { kind, host: record.hostname, name: record.name ?? "", labels: record.supportedLabels };
  });
  const all = new Set([...labels, ...pools.flatMap((pool) => pool.labels)]);
  const offered = new Set(others.flatMap(({ record }) => record.supportedLabels));
  const holderOf = (parent: string) => lockHolder(tree, parent, sessions.byOwner);
  const entries = [...view.nodes.byProvider.get(provider)].sort().map((id) => view.nodes.byId.get(id)!);
  const nodes = entries.map(async ({ id, record, contenders }) => ({
    id,
    state: record.state,
    holder: contenders.length === 0 ? null : await holderOf(paths.nodeLock(id)),
    suspended: isSuspended(record),
    given: record.allocatedTo !== null && view.requests.byId.has(record.allocatedTo),
  }));
  const hasNodes = new Set(entries.map(({ record }) => record.allocatedTo));
  const open = [...view.requests.byId.values()]
    .filter(
      ({ id, record: { state, nodeTypes } }) =>
        (state === "requested" || state === "pending") &&
        (hasNodes.has(id) || nodeTypes.every((label) => all.has(label))),
    )
    .sort((a, b) => compareText(a.id, b.id));
  const taken = open.filter(({ record }) => record.state === "pending");
  const hasAll = (wanted: readonly string[]) =>
    others.some(({ record }) => wanted.every((label) => record.supportedLabels.includes(label)));
  return {
    provider,
    pools,
    nodes: await Promise.all(nodes),
    unreadable: view.unreadable.ofProvider(provider).map(({ path }) => path),
    waiting: open.filter(({ record }) => record.state === "requested").map(({ id }) => id),
    taken: await Promise.all(
      taken.map(async ({ id }) => ({ id, holder: await holderOf(paths.requestLock(id)) })),
    ),
    onlyServedHere: open.filter(({ record }) => !hasAll(record.nodeTypes)).map(({ id }) => id),
    onlyHere: [...all].filter((label) => !offered.has(label)).sort(),
    otherPython: others.filter(({ key }) => sessions.byKey.get(key) === "python").length,
    backings: [...view.slots.backings.values()]
      .filter((backing) => backing.provider === provider)
      .map(({ id, data }) => ({ id, taken: view.slots.facts(id)?.taken.size ?? 0, slots: data.slots })),
    uploads: [...view.images.names()].filter((image) => view.images.get(image)?.ready.has(provider)).length,
  };
}

/** Launchers of both kinds by their components, and by the session that made these. */
async function launcherSessions(tree: OperationHandles["tree"], view: View) {
  const members = (await orUndefined(tree.children(MEMBERS))) ?? [];
  const byKey = new Map<string, LauncherKind>();
  const byOwner = new Map<bigint, Holder>();
  const stats = [...view.components].map(async ([key, { record }]) => {
    const owner = (await tree.stat(`${paths.components}/${key}`))?.ephemeralOwner ?? 0n;
    if (owner === 0n) return;
    const kind = isMemberSession(members, owner) ? "nodeyard" : "python";
    byKey.set(key, kind);
    byOwner.set(owner, { kind, name: record.hostname });
  });
  await Promise.all(stats);
  return { byKey, byOwner };
}

/** The lowest number holds it (docs/contract/locks.md, "The recipe"). Null: nobody does. */
async function lockHolder(
  tree: OperationHandles["tree"],
  parent: string,
  launchers: ReadonlyMap<bigint, Holder>,
): Promise<Holder | null> {
  const names = (await orUndefined(tree.children(parent))) ?? [];
  const [first] = [...names].sort((a, b) => (a.slice(-10) < b.slice(-10) ? -1 : 1));
  const found = first === undefined ? undefined : await orUndefined(tree.get(`${parent}/${first}`));
  if (found === undefined) return null;
  const text = Buffer.from(found.data).toString();
  const [lease, backing] = [leaseIdOf(text), metastaticProviderOf(text)];
  if (lease !== undefined) return { kind: "lease", name: lease };
  if (backing !== undefined) return { kind: "backing", name: backing };
  return launchers.get(found.stat.ephemeralOwner) ?? { kind: "client", name: "" };
}
