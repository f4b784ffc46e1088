import type { LabelConfig, LabelOffering, PoolConfig } from "./compiled.ts";
import { Field } from "./field.ts";
import { CLOUD_NAME, FROM_0 } from "./grammar.ts";
import { Reader } from "./reader.ts";
import { type Rule, section, type Table } from "./section.ts";
import { isMapping } from "./vocabulary.ts";
import { type Entry, entries, number, OURS, text } from "./words.ts";

/** One of a label's offerings as it is read: `label` is the label with the keys of the offering over its own. */
export type ReadOffering<Label> = Entry<Omit<LabelOffering, "label"> & { readonly label: Entry<Label> }>;

const ownKeys = {
  zone: text("The one zone in which it is bought.", { shown: "any of the pool's", like: CLOUD_NAME }),
  weight: number("Higher is preferred, whatever it costs; of equal ones the cheapest.", {
    default: 0,
    like: FROM_0,
  }),
  "max-price": number("It is not bought while an hour costs more, in the currency of its price.", {
    shown: "no limit",
    like: FROM_0,
  }),
};

/**
 * The key `offerings` of a label: what its machines may be bought as. `perOffering` are the keys of the driver that may differ; an offering
 * has the label's value of each that it leaves out.
 */
export function offeringKeys(labelTable: Table, perOffering: readonly string[]): Table {
  const whole = section(labelTable);
  const differing = perOffering.map((key) => {
    const { parts } = labelTable[key]!;
    const { needed: _, ...about } = parts.about;
    const schema = parts.schema.meta({ default: "the label's" });
    return [key, new Field({ ...parts, schema, about }).unread()] as const;
  });
  const list = entries(
    section({ ...Object.fromEntries(differing), ...ownKeys }),
    "What its machines may be bought as; each has the label's value of a key that it leaves out. Nodeyard takes the best that can be had now.",
  );
  const offerings = list.accepted(OURS).map((all, at) =>
    all.flatMap(({ at: of, ...offering }): ReadOffering<object>[] => {
      const label = mergedReader(at, of, perOffering);
      const values = whole.read(label) as object | undefined;
      return values === undefined ? [] : [{ ...offering, at: of, label: { ...values, at: label } }];
    }),
  );
  return { offerings };
}

/** The labels of a pool as they are launched: one with several offerings once for each. For what a driver prepares for all launches. */
export function launchedLabels<Own>({
  labels,
}: Pick<PoolConfig<never, Own>, "labels">): readonly LabelConfig<Own>[] {
  return [...labels.values()].flatMap((label) => label.offerings?.map((one) => one.label) ?? [label]);
}

/** A rule of labels, which each offering of a label has to keep with the label's own keys. */
export function ofEachOffering([holds, message]: Rule): Rule {
  return [
    (value) => {
      const { offerings } = value;
      if (!Array.isArray(offerings) || offerings.length === 0) return holds(value);
      return offerings.every((one) => !isMapping(one) || holds({ ...value, ...one }));
    },
    message,
  ];
}

/** A reader of a label with the keys of one of its offerings. What it reports stands where the key does. */
function mergedReader(label: Reader, offering: Reader, keys: readonly string[]): Reader {
  const own = keys.filter((key) => offering.has(key));
  const raw = { ...label.raw, ...Object.fromEntries(own.map((key) => [key, offering.raw[key]])) };
  return new Reader(raw, label.path, (finding) => {
    const [key, ...rest] = finding.path.slice(label.path.length);
    const isOwn = own.some((one) => one === key);
    label.report(isOwn ? { ...finding, path: [...offering.path, key!, ...rest] } : finding);
  });
}
