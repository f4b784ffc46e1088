import type { Config } from "@nodeyard/config";
import { decodeComponent, paths } from "@nodeyard/model";
import {
  type ListedNode,
  listBuilds,
  listNodes,
  listRequests,
  listUploads,
  type OperationHandles,
  readEach,
  treeNow,
} from "@nodeyard/operations";
import { compareText } from "@nodeyard/runtime";
import { REAPED } from "@nodeyard/scheduler";

/** Some things of one kind in the tree that are alike, and what becomes of them under a configuration. */
export interface MoveLine {
  /** For people, as is `then`, which is empty where nothing is to be said. */
  readonly what: string;
  readonly count: number;
  readonly then: string;
}

/** What a tree has, held against a configuration that no launcher has loaded yet. */
export interface MoveSurvey {
  /** Registered processes and pools, with what they serve and their versions. */
  readonly components: readonly MoveLine[];
  readonly requests: readonly MoveLine[];
  readonly nodes: readonly MoveLine[];
  readonly images: readonly MoveLine[];
}

/**
 * Reads the tree, and writes nothing. `installed`: providers of the configuration whose driver is there. Rejects with TreeError.
 * A static judgement: what a launcher decides may depend on what else happens until it starts.
 */
export async function surveyMove(
  handles: OperationHandles,
  config: Config,
  installed: ReadonlySet<string>,
): Promise<MoveSurvey> {
  const { tree } = handles;
  const kinds = await Promise.all(
    ["launcher", "builder", "pool"].map((kind) =>
      readEach(tree, paths.component(kind), (_, data) => decodeComponent(data)),
    ),
  );
  const components = kinds.flat().filter(({ state }) => state !== "stopped");
  const [nodes, requests] = [await listNodes(handles), await listRequests(handles)];
  const now = treeNow(handles);
  // Hosts of the launchers that serve a provider now.
  const servers = (provider: string) =>
    [
      ...new Set(components.filter((pool) => pool.providerName === provider).map((pool) => pool.hostname)),
    ].sort();
  return {
    components: summed(components, ({ kind, hostname, version, providerName, name, supportedLabels }) => [
      kind === "pool"
        ? `pool ${providerName}/${name} of ${hostname}, version ${version}`
        : `${kind} on ${hostname}, version ${version}`,
      kind === "pool" ? poolThen(config, providerName ?? "", supportedLabels) : "",
    ]),
    requests: summed(requests.items, ({ nodeTypes, state, declinedBy }) => {
      const able = config.providers.filter(({ pools }) =>
        pools.some(({ labels }) => nodeTypes.every((label) => labels.has(label))),
      );
      const names = able.map(({ name }) =>
        installed.has(name) ? name : `${name} (its driver is not installed)`,
      );
      const declined = declinedBy.length > 0 ? ", declined by some pools already" : "";
      return [
        `request for ${nodeTypes.join(", ")}, ${state}${declined}`,
        names.length > 0
          ? `can be served by ${names.join(", ")}`
          : "no pool of this file has these labels: not served by it",
      ];
    }),
    nodes: [
      ...summed(nodes.items, (node) => [
        `node of ${node.record.provider ?? "no provider"}, ${node.record.type.join(",")}, ${node.record.state}${node.locked ? ", locked" : ""}`,
        nodeThen(node, config, installed, servers, now),
      ]),
      ...summed(nodes.skipped, ({ path }) => [`unreadable ${path}`, "stays until it is repaired or removed"]),
    ],
    images: await imageLines(handles, config),
  };
}

/** What a registered pool offers, and what of it the configuration would not. */
function poolThen({ providers }: Config, provider: string, labels: readonly string[]): string {
  const offered = `offers ${[...labels].sort().join(", ") || "nothing"}`;
  const known = providers.find(({ name }) => name === provider);
  if (known === undefined) return `${offered}; this file does not have the provider`;
  const lost = labels.filter((label) => !known.pools.some((pool) => pool.labels.has(label)));
  return lost.length === 0 ? offered : `${offered}; this file does not have ${lost.sort().join(", ")} there`;
}

/** Decided by whose node it is, whether it is in use, its state, and its age, in this order. */
function nodeThen(
  { record, locked }: ListedNode,
  config: Config,
  installed: ReadonlySet<string>,
  servers: (provider: string) => readonly string[],
  now: number,
): string {
  const { state, provider, type, stateTime, allocatedTo, holdExpiration } = record;
  if (provider !== null && !installed.has(provider)) {
    const others = servers(provider);
    const why = config.providers.some(({ name }) => name === provider)
      ? "its driver is not installed"
      : "not in this file";
    const who =
      others.length > 0 ? `served by ${others.join(", ")}` : `nobody serves it; nodeyard erase ${provider}`;
    return `left alone, ${why}: ${who}`;
  }
  if (locked) return "stays until its holder returns it";
  if (REAPED.has(state)) return "deleted at once";
  if (state === "hold")
    return after(
      Math.min(config.maxHoldAgeMs, holdExpiration ? holdExpiration * 1000 : Number.POSITIVE_INFINITY),
    );
  if (state !== "ready") return "deleted if nobody works on it";
  if (allocatedTo !== null) return "waits for the requestor that it was given to";
  // A node with several labels goes when the first of their ages is over.
  const ages = type.map((label) => config.labels.get(label)?.maxReadyAgeMs ?? Number.POSITIVE_INFINITY);
  const offered = config.providers
    .filter(({ name }) => name === provider)
    .some(({ pools }) => pools.some(({ labels }) => type.some((label) => labels.has(label))));
  return `${offered ? "given to requests" : "no pool of its provider offers it: idle"}, ${after(Math.min(...ages))}`;

  function after(ms: number): string {
    if (!Number.isFinite(ms)) return "kept without end";
    const left = Math.round(((stateTime ?? 0) * 1000 + ms - now) / 60_000);
    return left <= 0 ? "deleted at once" : `deleted in ${left} min at the latest`;
  }
}

/** As a builder does it (builder/core/retire.ts): images that are not configured go; uploads of other providers are left alone. */
async function imageLines(handles: OperationHandles, { builder }: Config): Promise<readonly MoveLine[]> {
  const [builds, uploads] = [await listBuilds(handles), await listUploads(handles)];
  return [
    ...summed(uploads.items, ({ image, provider, record }) => {
      const listed = builder.uploads.get(provider)?.images.has(image);
      const isKept = builder.images.has(image) && listed === true;
      return [
        `upload of ${image} to ${provider}, ${record.state}`,
        listed === undefined
          ? "left alone: the provider is not in this file"
          : isKept
            ? "kept, as many as are current"
            : "no diskimage of this file defines it: deleted by a builder with this file, when no node boots from it",
      ];
    }),
    ...summed(builds.items, ({ image, record }) => [
      `build of ${image} by ${record.builder}, ${record.state}`,
      builder.images.has(image)
        ? "kept, as many as are current"
        : "no diskimage of this file defines it: deleted by a builder with this file, when its uploads are gone",
    ]),
  ];
}

/** One line for all items of which `lineOf` says the same, sorted. */
function summed<T>(
  items: readonly T[],
  lineOf: (item: T) => readonly [what: string, then: string],
): MoveLine[] {
  const lines = new Map<string, MoveLine>();
  for (const item of items) {
    const [what, then] = lineOf(item);
    const key = JSON.stringify([what, then]);
    lines.set(key, { what, then, count: (lines.get(key)?.count ?? 0) + 1 });
  }
  return [...lines.values()].sort((a, b) => compareText(a.what, b.what));
}
