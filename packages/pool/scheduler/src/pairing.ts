import type { MixedSet, NodeRecord, Pairing, Places, PoolOffer } from "@nodeyard/model";

/** Combinations of pools and zones that one plan looks at, at most. With more of them a set asks without knowing that it can end. */
const LOOKS = 10_000;

/** What a pool, or nodes that are held, would add to a set: its values of a fact; undefined: it is not known, and may be any. */
type Choice = (fact: string) => readonly string[] | undefined;

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
  offers: readonly PoolOffer[],
  held: (id: string) => NodeRecord | undefined,
): Paired {
  if (!same.some((rule) => concerns(rule, next))) return { places: undefined };
  const others = parts
    .filter(({ label }) => label !== next)
    .map(({ label, nodes }) => ({ label, choices: choicesOf(label, nodes, offers, held) }));
  const places: Record<string, readonly string[] | null> = {};
  const mine = offers.filter(({ labels }) => labels.includes(next));
  // A pool that reports nothing, as those of Nodepool's launchers: what it gives is judged when it is there.
  if (mine.length === 0) return { places: undefined };
  const looks = { left: LOOKS };
  const fits = (choice: Choice) => agree(same, others, new Map(), next, choice, looks);
  for (const offer of mine) {
    const pool = `${offer.provider}/${offer.name}`;
    const choice: Choice = (fact) => offered(offer, fact);
    const isZoned = offer.zones.length > 0 && !Object.hasOwn(offer.attributes, "zone");
    const zoned = same.some((rule) => rule.fact === "zone" && concerns(rule, next)) && isZoned;
    if (!zoned) {
      if (fits(choice)) places[pool] = null;
      continue;
    }
    const zones = offer.zones.filter((zone) => fits((fact) => (fact === "zone" ? [zone] : choice(fact))));
    if (zones.length > 0) places[pool] = zones;
  }
  return Object.keys(places).length > 0 ? { places } : { why: whyApart(same, parts, offers, held) };
}

function concerns({ labels }: Pairing, label: string): boolean {
  return labels.length === 0 || labels.includes(label);
}

/** What a part can be: the nodes that it has, or any of the pools of its label. */
function choicesOf(
  label: string,
  nodes: readonly string[],
  offers: readonly PoolOffer[],
  held: (id: string) => NodeRecord | undefined,
): readonly Choice[] {
  const records = nodes.flatMap((id) => held(id) ?? []);
  if (records.length > 0)
    return [(fact) => [...new Set(records.map((record) => factOf(record, fact) ?? ""))].filter(Boolean)];
  const pools = offers.filter(({ labels }) => labels.includes(label));
  return pools.length === 0 ? [() => undefined] : pools.map((offer) => (fact) => offered(offer, fact));
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
  offers: readonly PoolOffer[],
  held: (id: string) => NodeRecord | undefined,
): string {
  for (const rule of same) {
    const values = parts
      .filter(({ label }) => concerns(rule, label))
      .map(({ label, nodes }) => {
        const all = choicesOf(label, nodes, offers, held).map((choice) => choice(rule.fact));
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
