import type { MixedSet, NodeRecord, Pairing, Places, PoolOffer } from "@nodeyard/model";

/** Combinations of pools and zones that one plan looks at, at most. With more of them a set asks without knowing that it can end. */
const LOOKS = 1_000;

/** What a pool, or nodes that are held, would add to a set: its values of a fact; undefined: it is not known, and may be any. */
type Choice = (fact: string) => readonly string[] | undefined;

/** The pools of which a set can be put together. */
export interface Pools {
  /** Of all pools that are reported, each as often as a launcher serves it. */
  readonly offers: readonly PoolOffer[];
  /** Of all pools that are registered, also those of Nodepool's launchers, each as often as a launcher serves it. */
  readonly registered: readonly Pick<PoolOffer, "provider" | "labels">[];
}

/** Where nodes may be, or why no places agree. `places` undefined: anywhere. */
export type Paired = { readonly places: Places | undefined } | { readonly why: string };

/** The value of a fact of a node; undefined: it has none, and so agrees with nothing. What the configuration says of a zone goes first. */
export function factOf(
  { provider, az, attributes }: Pick<NodeRecord, "provider" | "az" | "attributes">,
  fact: string,
): string | undefined {
  const said = (attributes as Readonly<Record<string, unknown>> | null)?.[fact];
  const value = said ?? (fact === "zone" ? az : fact === "provider" ? provider : null);
  return typeof value === "string" || typeof value === "number" ? `${value}` : undefined;
}

/** The values of a fact that nodes of a pool may have. */
function offered({ provider, zones, attributes }: PoolOffer, fact: string): readonly string[] {
  const said = Object.hasOwn(attributes, fact) ? attributes[fact] : undefined;
  if (said !== undefined) return [said];
  return fact === "zone" ? zones : fact === "provider" ? [provider] : [];
}

/** The first rule that nodes of a set break; undefined: they agree. */
export function brokenRule(
  { same }: Pick<MixedSet, "same">,
  nodes: readonly { readonly label: string; readonly record: NodeRecord }[],
): Pairing | undefined {
  return same.find((rule) => {
    const values = nodes
      .filter(({ label }) => concerns(rule, label))
      .map(({ record }) => factOf(record, rule.fact));
    return values.some((value) => value === undefined || value !== values[0]);
  });
}

/**
 * The places for the next part of a set, with which those that are held and those that come later can agree: all pools of all labels are
 * tried together, so that a set that can never be put together reserves nothing.
 */
export function pairFor(
  { same, parts }: Pick<MixedSet, "same" | "parts">,
  next: string,
  pools: Pools,
  held: (id: string) => NodeRecord | undefined,
): Paired {
  if (!same.some((rule) => concerns(rule, next))) return { places: undefined };
  const others = parts
    .filter(({ label }) => label !== next)
    .map(({ label, nodes }) => ({ label, choices: choicesOf(label, nodes, pools, held) }));
  const mine = pools.offers.filter(({ labels }) => labels.includes(next));
  const unknown = unreported(next, pools);
  if (mine.length === 0) return { places: undefined };
  const places: Record<string, readonly string[] | null> = {};
  for (const provider of unknown) places[placeOf(provider)] = null;
  const looks = { left: LOOKS };
  const fits = (choice: Choice) => agree(same, others, new Map(), next, choice, looks);
  for (const offer of mine) {
    const pool = `${offer.provider}/${offer.name}`;
    const choice: Choice = (fact) => offered(offer, fact);
    const isZoned = offer.zones.length > 0 && !Object.hasOwn(offer.attributes, "zone");
    const zoned = same.some((rule) => rule.fact === "zone" && concerns(rule, next)) && isZoned;
    if (!zoned) {
      if (fits(choice)) places[pool] = null;
      else if (unknown.has(offer.provider)) places[pool] = [];
      continue;
    }
    const zones = offer.zones.filter((zone) => fits((fact) => (fact === "zone" ? [zone] : choice(fact))));
    if (zones.length > 0 || unknown.has(offer.provider)) places[pool] = zones;
  }
  return Object.keys(places).length > 0 ? { places } : { why: whyApart(same, parts, pools, held) };
}

/** The zones of a pool in which a request may be served; null: in all; undefined: in none. */
export function zonesFor(
  places: Places | undefined,
  { key, provider }: { readonly key: string; readonly provider: string },
): readonly string[] | null | undefined {
  if (places === undefined) return null;
  const zones = Object.hasOwn(places, key) ? places[key] : places[placeOf(provider)];
  return zones?.length === 0 ? undefined : zones;
}

/** Stands for the pools of a provider that no launcher has reported: its key, as no pool's, ends with a slash. */
function placeOf(provider: string): string {
  return `${provider}/`;
}

/**
 * Providers whose pools of a label are not all reported: of Nodepool's launchers, of older releases, of one that has just started. What they
 * give is judged when it is there.
 */
function unreported(label: string, { offers, registered }: Pools): ReadonlySet<string> {
  const missing = new Map<string, number>();
  for (const { provider, labels } of registered)
    if (labels.includes(label)) missing.set(provider, (missing.get(provider) ?? 0) + 1);
  for (const { provider, labels } of offers)
    if (labels.includes(label)) missing.set(provider, (missing.get(provider) ?? 0) - 1);
  return new Set([...missing].flatMap(([provider, count]) => (count > 0 ? [provider] : [])));
}

function concerns({ labels }: Pairing, label: string): boolean {
  return labels.length === 0 || labels.includes(label);
}

/** What a part can be: the nodes that it has, or any of the pools of its label. */
function choicesOf(
  label: string,
  nodes: readonly string[],
  known: Pools,
  held: (id: string) => NodeRecord | undefined,
): readonly Choice[] {
  const records = nodes.flatMap((id) => held(id) ?? []);
  if (records.length > 0)
    return [(fact) => [...new Set(records.map((record) => factOf(record, fact) ?? ""))].filter(Boolean)];
  const offers = known.offers.filter(({ labels }) => labels.includes(label));
  const choices: readonly Choice[] = offers.map((offer) => (fact) => offered(offer, fact));
  const isKnown = offers.length > 0 && unreported(label, known).size === 0;
  return isKnown ? choices : [() => undefined, ...choices];
}

/** Whether the choice for one label can be completed with one for each of the others, so that each rule has a value that all of them have. */
function agree(
  rules: readonly Pairing[],
  [first, ...others]: readonly { readonly label: string; readonly choices: readonly Choice[] }[],
  left: ReadonlyMap<Pairing, readonly string[]>,
  label: string,
  choice: Choice,
  looks: { left: number },
): boolean {
  if (looks.left-- <= 0) return true;
  const rest = new Map(left);
  for (const rule of rules) {
    const values = concerns(rule, label) ? choice(rule.fact) : undefined;
    if (values === undefined) continue;
    const common = rest.get(rule)?.filter((value) => values.includes(value)) ?? values;
    if (common.length === 0) return false;
    rest.set(rule, common);
  }
  if (first === undefined) return true;
  return first.choices.some((one) => agree(rules, others, rest, first.label, one, looks));
}

/** Names the values of the first rule that fails alone, or all rules where only together they cannot be met. */
function whyApart(
  same: readonly Pairing[],
  parts: MixedSet["parts"],
  pools: Pools,
  held: (id: string) => NodeRecord | undefined,
): string {
  for (const rule of same) {
    const values = parts
      .filter(({ label }) => concerns(rule, label))
      .map(({ label, nodes }) => {
        const all = choicesOf(label, nodes, pools, held).map((choice) => choice(rule.fact));
        return {
          label,
          found: all.includes(undefined) ? undefined : [...new Set(all.flatMap((one) => one!))],
        };
      });
    const known = values.flatMap(({ found }) => (found === undefined ? [] : [found]));
    const [first = [], ...others] = known;
    if (first.some((value) => others.every((other) => other.includes(value)))) continue;
    const said = values.map(({ label, found }) => `${label}: ${found?.sort().join(", ") || "none"}`);
    return `its nodes cannot be of the same ${rule.fact} (${said.join("; ")})`;
  }
  return `no pools of its labels agree in ${same.map(({ fact }) => fact).join(", ")} together`;
}
