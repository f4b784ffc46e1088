import type { ComponentRecord } from "./component.ts";
import {
  type StandingFact,
  type StandingReport,
  type StandingState,
  severity,
  standingFact,
} from "./standing.ts";

/** What there is to judge by: reports of members, and what the tree itself says. */
export interface StandingFacts {
  readonly reports: Iterable<StandingReport>;
  readonly components: Iterable<ComponentRecord>;
  /** How many nodes there are of each provider. */
  readonly nodes: ReadonlyMap<string, number>;
  /** Diskimages that the tree knows. */
  readonly images: Iterable<string>;
}

/** How one thing stands, for all members together. */
export interface Standing extends StandingFact {
  /** `<kind>/<name>`. */
  readonly id: string;
  /** Hosts of the members that say so. */
  readonly members: readonly string[];
  /** Id of the standing that this one follows from; null: it has a cause of its own. */
  readonly because: string | null;
}

/** A fact, and who states it. */
type Stated = StandingFact & { readonly member: string };

/**
 * How everything stands, the worst first: the only place that judges it, for every list, page, metric and command. A thing that some
 * members see good and others failing is degraded. The pools that can serve a label decide about the label.
 */
export function standingsOf({ reports, components, nodes, images }: StandingFacts): readonly Standing[] {
  const stated = [...reports].flatMap(({ hostname, facts }) =>
    facts.map((fact): Stated => ({ ...fact, member: hostname })),
  );
  const registered = [...components];
  const pools = registered.filter(({ kind, state }) => kind === "pool" && state !== "stopped");
  const facts = [
    ...stated,
    ...registered.flatMap(memberFact),
    ...poolFacts(pools, stated),
    ...leftProviders(nodes, stated, pools),
    ...unbuilt(images, stated, registered),
  ];
  const byId = Map.groupBy(
    facts.filter(({ kind }) => kind !== "label"),
    idOf,
  );
  const standings = [...byId.values()].map((all) => merged(all));
  const found = new Map(standings.map((one) => [one.id, one]));
  for (const one of providersByHosts(found, facts)) found.set(one.id, one);
  return [...found.values(), ...labelStandings(facts, found)].sort(
    (a, b) => severity(a.state) - severity(b.state) || (a.id < b.id ? -1 : 1),
  );
}

function idOf({ kind, name }: Pick<StandingFact, "kind" | "name">): string {
  return `${kind}/${name}`;
}

/** What several members, or several facts of one, say of one thing. */
function merged(facts: readonly Stated[]): Standing {
  // Of members that say the same, one that knows the cause.
  const [worst] = facts.toSorted(
    (a, b) => severity(a.state) - severity(b.state) || Number(a.cause === null) - Number(b.cause === null),
  );
  const { member: _member, pools: _pools, labels, ...fact } = worst!;
  const members = facts.filter((one) => one.state === fact.state).map(({ member }) => member);
  return {
    ...fact,
    // Those of a provider are in its pools.
    ...(fact.kind === "host" && { labels }),
    id: idOf(fact),
    state: together(facts.map((one) => one.state)),
    members: [...new Set(members)].filter((member) => member !== "").sort(),
    because: null,
  };
}

/** One state for several: good and failing together are degraded; what is not known yet decides nothing beside what is. */
function together(states: readonly StandingState[]): StandingState {
  const known = states.filter((state) => state !== "unknown");
  const [worst] = known.toSorted((a, b) => severity(a) - severity(b));
  if (worst === undefined) return "unknown";
  return worst === "failing" && known.some((state) => state !== "failing") ? "degraded" : worst;
}

const state = (fact: StandingFact, member = ""): Stated => ({ ...fact, member });

function memberFact({ kind, hostname, state: own }: ComponentRecord): readonly Stated[] {
  if (kind !== "launcher" && kind !== "builder") return [];
  const fact =
    own === "stopped"
      ? standingFact(kind, hostname, "unknown", "member.stopped")
      : standingFact(kind, hostname, "good", "member.runs");
  return [state(fact, hostname)];
}

/** Pools of launchers that report nothing, such as Nodepool's: they are registered, so they serve. */
function poolFacts(pools: readonly ComponentRecord[], stated: readonly Stated[]): readonly Stated[] {
  // A builder's report, of the same host, says nothing of them.
  const reporters = new Set(
    stated.filter(({ kind }) => kind !== "image" && kind !== "builder").map(({ member }) => member),
  );
  return pools
    .filter(({ providerName, hostname }) => providerName !== null && !reporters.has(hostname))
    .map(({ providerName, hostname, supportedLabels: labels }) =>
      state(standingFact("provider", providerName!, "good", "provider.served", { labels }), hostname),
    );
}

/** Nodes of a provider that no launcher has in its configuration. */
function leftProviders(
  nodes: StandingFacts["nodes"],
  stated: readonly Stated[],
  pools: readonly ComponentRecord[],
): readonly Stated[] {
  const known = new Set([
    ...pools.map(({ providerName }) => providerName ?? ""),
    ...stated.filter(({ kind }) => kind === "provider").map(({ name }) => name),
  ]);
  return [...nodes]
    .filter(([provider]) => provider !== "" && !known.has(provider))
    .map(([provider, count]) => {
      const cause = `${count} ${count === 1 ? "node is" : "nodes are"} left of it`;
      return state(standingFact("provider", provider, "failing", "provider.left", { cause }));
    });
}

/** Images of the tree that no builder has reported: without a builder nothing becomes of them. */
function unbuilt(
  images: StandingFacts["images"],
  stated: readonly Stated[],
  components: readonly ComponentRecord[],
): readonly Stated[] {
  const known = new Set(stated.filter(({ kind }) => kind === "image").map(({ name }) => name));
  const code = components.some(({ kind }) => kind === "builder") ? "image.unreported" : "image.no-builder";
  return [...images]
    .filter((image) => !known.has(image))
    .map((image) => state(standingFact("image", image, "unknown", code)));
}

/** A provider that is open, and none of whose hosts answers, is of no use. */
function providersByHosts(
  found: ReadonlyMap<string, Standing>,
  facts: readonly Stated[],
): readonly Standing[] {
  const hosts = Map.groupBy(
    facts.filter(({ kind }) => kind === "host"),
    ({ provider }) => provider ?? "",
  );
  return [...hosts].flatMap(([name, all]) => {
    const provider = found.get(`provider/${name}`);
    if (provider?.state !== "good" || together(all.map(({ state }) => state)) !== "failing") return [];
    const { since, cause, nextTry, id } = merged(all);
    return [{ ...provider, state: "failing", code: "provider.no-hosts", since, cause, nextTry, because: id }];
  });
}

/** Each label that a provider offers or a configuration names, by what could serve it. */
function labelStandings(facts: readonly Stated[], found: ReadonlyMap<string, Standing>): readonly Standing[] {
  const own = Map.groupBy(
    facts.filter(({ kind }) => kind === "label"),
    ({ name }) => name,
  );
  const offers = new Map<string, Set<string>>();
  const hosts = new Map<string, Stated[]>();
  const add = <T>(map: Map<string, T>, key: string, empty: () => T) => {
    const value = map.get(key) ?? empty();
    map.set(key, value);
    return value;
  };
  for (const one of facts)
    for (const label of one.labels ?? []) {
      if (one.kind === "provider") add(offers, label, () => new Set<string>()).add(one.name);
      if (one.kind === "host") add(hosts, JSON.stringify([one.provider, label]), () => []).push(one);
    }
  return [...new Set([...offers.keys(), ...own.keys()])].map((label) => {
    const about = own.get(label) ?? [];
    const parts = [...(offers.get(label) ?? [])].sort().map((provider): Standing => {
      const whole = found.get(`provider/${provider}`)!;
      // Where hosts are the reason, those with the label say it best.
      if (whole.state === "failing" && whole.because === null) return { ...whole, because: whole.id };
      const here = about.filter((one) => one.provider === provider);
      if (here.length > 0) return merged(here);
      const mine = hosts.get(JSON.stringify([provider, label]));
      const host = mine && merged(mine);
      return { ...(host ?? whole), because: (host ?? whole).id };
    });
    return labelStanding(label, parts, about);
  });
}

function labelStanding(name: string, parts: readonly Standing[], about: readonly Stated[]): Standing {
  const base = { kind: "label", name, id: `label/${name}` } as const;
  const noPool = about.filter(({ provider }) => provider === undefined);
  if (parts.length === 0) return { ...merged(noPool.length > 0 ? noPool : about), ...base };
  const whole = together(parts.map((part) => part.state));
  if (whole === "good")
    return {
      ...parts[0]!,
      ...base,
      state: whole,
      code: "label.offered",
      cause: null,
      nextTry: null,
      because: null,
      since: null,
    };
  const [worst] = parts.toSorted((a, b) => severity(a.state) - severity(b.state));
  const { cause, since, nextTry, members, because, code } = worst!;
  // A reason of its own keeps its code; what follows from a provider or a host is said of these.
  const own = because === null ? code : LABEL_CODES[whole];
  return { ...base, state: whole, code: own, cause, since, nextTry, members, because };
}

const LABEL_CODES = {
  failing: "label.unserved",
  degraded: "label.partly",
  unknown: "label.opening",
} as const;
