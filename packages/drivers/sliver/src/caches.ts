import {
  CACHE_FACTS,
  cacheFactsOf,
  cacheKeyOf,
  cacheText,
  DriverError,
  Is,
  Key,
  type RequestFacts,
  type StepContext,
  type Values,
} from "@nodeyard/driver";
import {
  areApart,
  CACHE_PATH,
  CLASS,
  type NodeReport,
  type SliverReport,
  type SliverSpecInput,
  type SliverVolume,
} from "@nodeyard/sliver-protocol";

/** A part of a key: a fact, or a word that is the same for all. */
const PART = /^(?:label|client|tenant|project|branch|word:[A-Za-z0-9._-]{1,64})$/;

const table = {
  name: Key.text("Name of the cache, or of a folder of the machine.", {
    needed: true,
    like: Is.pattern("a name of lower-case letters, digits, _ and -", CLASS, [["ccache"], ["/srv/ccache"]]),
  }),
  size: Key.integer(
    "What a sliver may have in it, promised as well; without it, the name is that of a folder of the machine (`isolation.caches` in its `sliverd.json`), which is only read.",
    { default: undefined, like: Is.whole(1, 10_000_000), unit: "MiB" },
  ),
  path: Key.text("Where it is in the sliver.", {
    default: undefined,
    shown: "/cache/NAME",
    like: Is.pattern("an absolute path outside of the system's folders", CACHE_PATH, [
      ["/cache/npm", "/home/ci/.m2"],
      ["/etc", "/usr/lib", "cache", "/a/../etc"],
    ]),
  }),
  key: Key.texts(
    "Which requests share it: those of one tenant for which these are equal. `label`, `client`, `tenant`, `project`, `branch`, or `word:` and a word of your own, as in `word:v2`.",
    {
      default: ["label"],
      like: Is.pattern("label, client, tenant, project, branch or word:TEXT", PART, [
        ["label", "word:v2"],
        ["pipeline", "word:"],
      ]),
    },
  ),
  commit: Key.choice(
    "When what a sliver leaves becomes the cache. `success`: its client said when it gave the node back that its job ended well. `always`: it was given back. `never`: it is only read.",
    ["success", "always", "never"],
  ),
  "commit-only": Key.strings(
    "Facts that a request must have to change the cache, as in `{branch: main}`; others only read it.",
    { keys: Is.among(CACHE_FACTS, "tenant") },
  ),
  "max-age": Key.seconds("A cache that began this long ago is not used any more; it begins anew.", {
    default: undefined,
    shown: "no limit",
    like: Is.FROM_0,
  }),
};

type CacheRule = Values<typeof table>;

/** The key `caches`: names of folders that slivers read, and caches of which each has a copy. */
export const cachesKey = Key.entries(
  Key.section(table),
  "Caches of its slivers, each at `/cache/NAME`. A name alone is a folder of the machine that it may read (`isolation.caches` in its `sliverd.json`); with a `size`, each sliver has a copy of the cache, and may leave what it has in it to the next one.",
  { alone: "name" },
).map((all, at, key) => {
  const folders = all.filter(({ size }) => size === undefined).map(({ name }) => name!);
  const rules = all.flatMap(({ at: _, ...rule }) => (rule.size === undefined ? [] : [rule]));
  if (!areApart(rules.map((rule) => ({ name: rule.name!, path: pathOf(rule) }))))
    at.error(key, "must have different names, and paths of which none is within another");
  return { folders, rules };
});

/** Caches of a label. */
export interface Caches {
  readonly folders: readonly string[];
  readonly rules: readonly CacheRule[];
}

/** For whom a sliver is made. */
export interface CacheUser {
  readonly installation: string;
  readonly label: string;
  readonly request: Pick<RequestFacts, "id" | "requestor" | "requestorData" | "tenantName">;
}

/**
 * The copies of caches for a sliver of the label. Without a request that is known, or one that says all facts of the key, a cache is nobody's:
 * it begins empty.
 */
export function volumesOf({ rules }: Caches, user: CacheUser | undefined): SliverVolume[] {
  return rules.map((rule) => {
    const facts = user && cacheFactsOf(user.label, user.request);
    const key = user && cacheKeyOf(rule.key, user.label, user.request);
    const commits = Object.entries(rule.commitOnly).every(
      ([name, value]) => facts?.[name as keyof typeof facts] === value,
    );
    return {
      name: rule.name!,
      path: pathOf(rule),
      size: rule.size! * 1024,
      // Installations that share a machine have tenants of the same names.
      ...(key && { key: [user.installation, ...key] }),
      commit: commits ? rule.commit : "never",
      ...(rule.maxAge === undefined ? {} : { maxAge: rule.maxAge / 1000 }),
    };
  });
}

/** How many of the copies can begin with a cache of the machine. */
export function cachesFor(
  volumes: readonly SliverVolume[],
  { caches = [] }: Pick<NodeReport, "caches">,
): number {
  const there = new Set(caches.map(({ name, key }) => cacheText(name, key)));
  return volumes.filter(({ name, key }) => key !== undefined && there.has(cacheText(name, key))).length;
}

/** Tags of a sliver that says for which request its caches are. */
export function cacheTags({ rules }: Caches, user: CacheUser | undefined): Readonly<Record<string, string>> {
  return rules.length > 0 && user !== undefined ? { [REQUEST]: user.request.id } : {};
}

const REQUEST = "request";

/** Throws "not-found" where the sliver has a cache of another request: what is in it may be another tenant's. */
export function demandOwnCaches({ name, volumes = [], tags }: SliverReport, { request }: StepContext): void {
  if (volumes.every(({ key }) => key === undefined) || tags[REQUEST] === request) return;
  throw new DriverError("not-found", `sliver ${name} has caches of request ${tags[REQUEST]}`);
}

/** Whether a sliver that is given back leaves a cache. */
export function leaves({ volumes = [] }: Pick<SliverReport, "volumes">, { returned }: StepContext): boolean {
  return volumes.some((one) => isLeft(one, returned));
}

/** The sliver with the caches marked that it leaves when it has ended. */
export function leaving(spec: SliverSpecInput, { returned }: StepContext): SliverSpecInput {
  const volumes = spec.volumes?.map((one) =>
    isLeft(one, returned) ? { ...one, commit: "at-end" as const } : one,
  );
  return volumes === undefined ? spec : { ...spec, volumes };
}

function isLeft(
  { commit }: { readonly commit?: string | undefined },
  returned: StepContext["returned"],
): boolean {
  return (commit === "success" && returned === "well") || (commit === "always" && returned !== undefined);
}

function pathOf({ name, path }: CacheRule): string {
  return path ?? `/cache/${name}`;
}
