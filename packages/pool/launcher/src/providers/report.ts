import {
  decodeFailures,
  failurePath,
  firstLine,
  labelKey,
  offeringKey,
  type PoolOffer,
  readable,
  type StandingFact,
  standingFact,
} from "@nodeyard/model";
import type { StandingCode } from "@nodeyard/operations";
import { counted } from "@nodeyard/runtime";
import type { View } from "@nodeyard/view";
import type { LauncherConfig } from "../options.ts";
import type { Stranded } from "./former.ts";
import type { ProviderFacts } from "./learn-facts.ts";
import { failingOf, type Served } from "./served.ts";

/** What this launcher reports of its providers, of their hosts and of the labels of its configuration. */
export function launcherFacts(
  { providers, labels }: Pick<LauncherConfig, "providers" | "labels">,
  served: ReadonlyMap<string, Served>,
  replacements: ReadonlyMap<string, Served>,
  view: Pick<View, "own" | "images">,
  stranded: readonly Stranded[],
): readonly StandingFact[] {
  const offered = new Set(providers.flatMap(({ pools }) => pools.flatMap((pool) => [...pool.labels.keys()])));
  return [
    ...[...served.values()].flatMap((one) => [
      {
        ...providerFact(one, replacements.get(one.config.name), stranded),
        ...(one.facts !== undefined && { pools: offersOf(one.config, one.facts) }),
      },
      ...(one.inventory?.facts() ?? []),
      ...(one.facts === undefined ? [] : labelFacts(one.config.name, one.facts, view)),
    ]),
    ...stranded.flatMap(({ why, provider, nodes }) =>
      why === "leaving"
        ? [fact("provider", provider, "degraded", "provider.leaving", { cause: `${are(nodes)} left` })]
        : [],
    ),
    ...[...labels.keys()]
      .filter((label) => !offered.has(label))
      .map((label) => fact("label", label, "failing", "label.no-pool")),
  ];
}

/** With a code that has a text. */
const fact = (
  kind: StandingFact["kind"],
  name: string,
  state: StandingFact["state"],
  code: StandingCode,
  more: Partial<StandingFact> = {},
): StandingFact => standingFact(kind, name, state, code, more);

function providerFact(served: Served, next: Served | undefined, stranded: readonly Stranded[]): StandingFact {
  const { config, open, brake } = served;
  const failing = failingOf(served);
  const labels = [...new Set(config.pools.flatMap((pool) => [...pool.labels.keys()]))].sort();
  const why = (one: NonNullable<Served["failing"]>) => ({
    labels,
    since: one.since,
    cause: firstLine(one.error),
    nextTry: one.nextTry,
  });
  const { name } = config;
  if (failing !== undefined) {
    const code = `${failing.code}` as StandingCode;
    return fact("provider", name, "failing", code, why(failing));
  }
  if (open === undefined) return fact("provider", name, "unknown", "provider.opening", { labels });
  if (next?.failing !== undefined)
    return fact("provider", name, "degraded", "provider.not-in-force", why(next.failing));
  const elsewhere = stranded.filter(({ why, provider }) => why === "elsewhere" && provider === name);
  if (elsewhere.length > 0) {
    const cause = elsewhere.map(({ nodes, place }) => `${are(nodes)} in ${place}`).join("; ");
    return fact("provider", name, "degraded", "provider.elsewhere", { labels, cause });
  }
  if (brake !== undefined) {
    const cause = `${brake.leaked} machines have no record, and ${brake.vanished} ready nodes have no machine`;
    return fact("provider", name, "degraded", "provider.braked", { labels, cause });
  }
  const { impaired } = open.troubles;
  if (impaired !== undefined) {
    const cause = firstLine(impaired.error);
    return fact("provider", name, "degraded", "provider.impaired", { labels, since: impaired.since, cause });
  }
  return fact("provider", name, "good", "provider.served", { labels });
}

/** What the pools of a provider offer to mixed sets. */
function offersOf(
  { pools: configured }: Served["config"],
  { local, pools }: ProviderFacts,
): readonly PoolOffer[] {
  return pools.map(({ provider, name, labels, unavailable, launches, zones, offerings = new Map() }) => {
    const attributes = configured.find((pool) => pool.name === name)?.nodeAttributes ?? {};
    const offered = [...labels].filter((label) => !unavailable.has(label)).sort();
    const sold = [...offerings.values()].flat().flatMap(({ zone }) => zone ?? []);
    return {
      ...{ provider, name, labels: offered },
      kind: local.slots !== undefined ? "slots" : launches ? "machines" : "hosts",
      backing: offered.flatMap((label) => local.slots?.get(label)?.backingLabel ?? []),
      zones: zones.length > 0 ? zones : [...new Set(sold)],
      attributes: Object.fromEntries(
        Object.entries(attributes).flatMap(([key, value]) =>
          typeof value === "string" || typeof value === "number" ? [[key, `${value}`]] : [],
        ),
      ),
    };
  });
}

const are = (nodes: number) => counted(nodes, "node is", "nodes are");

/** Labels that an open provider cannot serve, or only in a part of its zones. */
function labelFacts(
  provider: string,
  { pools }: ProviderFacts,
  view: Pick<View, "own" | "images">,
): readonly StandingFact[] {
  return pools.flatMap((pool) =>
    [...pool.labels].flatMap((label) => {
      const unavailable = pool.unavailable.get(label);
      if (unavailable === undefined)
        return imageFact(provider, pool, label, view) ?? failureFact(provider, pool, label, view) ?? [];
      const why = { provider, cause: firstLine(unavailable) };
      return fact("label", label, "failing", "label.unavailable", why);
    }),
  );
}

type Pool = ProviderFacts["pools"][number];

/** Its diskimage has no upload there. While one is being made, that is no fault yet. */
function imageFact(provider: string, { images }: Pool, label: string, view: Pick<View, "images">) {
  const image = images.get(label);
  const known = image === undefined ? undefined : view.images.get(image);
  if (image === undefined || known?.ready.has(provider) === true) return undefined;
  const isComing = (known?.builds.building ?? 0) > 0 || known?.uploading.has(provider) === true;
  const cause = `no upload of diskimage ${image} to ${provider} is ready`;
  return fact("label", label, isComing ? "unknown" : "failing", "label.no-image", { provider, cause });
}

/** Its offering is closed in zones of the provider, or nothing of it works anywhere (docs/design/breakers.md). */
function failureFact(provider: string, pool: Pool, label: string, { own }: Pick<View, "own">) {
  const failures = (key: string) => {
    const entry = own.get(failurePath(key));
    return (entry && readable(() => decodeFailures(key, entry.data))) ?? [];
  };
  const all = pool.zones.length === 0 ? [null] : pool.zones;
  const offered = pool.offerings?.get(label) ?? [{ type: pool.types?.get(label) ?? label, zone: null }];
  const zones = offered.flatMap(({ type, zone }) =>
    (zone === null ? all : [zone]).map((az) => offeringKey({ provider, az, type })),
  );
  const closed = zones.flatMap(failures);
  const [why] = [closed, failures(labelKey(label))].flat();
  if (why === undefined) return undefined;
  const tries = closed.flatMap(({ pause }) => pause?.until ?? []);
  return fact(
    "label",
    label,
    closed.length === zones.length ? "failing" : "degraded",
    "label.launches-fail",
    {
      provider,
      cause: firstLine(why.error),
      since: why.since,
      nextTry: tries.length === 0 ? null : Math.min(...tries),
    },
  );
}
