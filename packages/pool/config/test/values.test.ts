import type { DriverConfig, Grammar, Section } from "@nodeyard/driver";
import { lxdConfig } from "@nodeyard/driver-lxd";
import { qemuConfig } from "@nodeyard/driver-qemu";
import { sliverConfig } from "@nodeyard/driver-sliver";
import { describe, expect, it } from "vitest";
import { configurationSection, loadConfig, secureFileSection, validateConfig } from "../src/index.ts";
import { drivers as known } from "./support.ts";

/** Every key of every table that has a grammar, a range or a size: its right examples pass, its wrong ones get the verdict. */

const more: Readonly<Record<string, DriverConfig>> = {
  lxd: lxdConfig as DriverConfig,
  qemu: qemuConfig as DriverConfig,
  sliver: sliverConfig as DriverConfig,
};
const drivers = {
  get: (name: string) => more[name] ?? known.get(name),
  names: () => [...known.names(), ...Object.keys(more)],
};

type Path = readonly (string | number)[];
interface Rule {
  readonly path: Path;
  readonly grammar: Grammar;
  /** A value of the key, with the example in it. */
  readonly wrap: (example: unknown) => unknown;
  readonly instead: string | undefined;
}

/** The rules of a table, and of the tables inside of it. `at`: keys and, for lists, 0. */
function rulesOf(section: Pick<Section<unknown>, "table">, at: Path = []): Rule[] {
  return Object.entries(section.table).flatMap(([key, { parts }]): Rule[] => {
    if (parts.group !== undefined) return rulesOf({ table: parts.group }, at);
    const path = [...at, key];
    const { like, keys, all, instead } = parts.about;
    const type = kindOf(parts.schema);
    const inside =
      parts.inside === undefined ? [] : rulesOf(parts.inside, type === "list" ? [...path, 0] : path);
    const rule = (grammar: Grammar | undefined, wrap: Rule["wrap"]): Rule[] =>
      grammar === undefined ? [] : [{ path, grammar, wrap, instead }];
    return [
      ...rule(like, (one) => (type === "list" ? [one] : type === "mapping" ? { k: one } : one)),
      ...rule(keys, (one) => ({ [String(one)]: "v" })),
      ...rule(all, (one) => (type === "mapping" ? { ...(one as object) } : one)),
      ...inside,
    ];
  });
}

function kindOf(schema: { safeParse(value: unknown): { success: boolean } }): "list" | "mapping" | "one" {
  if (schema.safeParse([]).success) return schema.safeParse("x").success ? "one" : "list";
  return schema.safeParse({}).success ? "mapping" : "one";
}

/** `{pools: [{labels: [{cpu: value}]}]}` for pools, 0, labels, 0, cpu. */
function nested(path: Path, value: unknown): unknown {
  return path.reduceRight((inner, step) => (step === 0 ? [inner] : { [step]: inner }), value);
}

/** What the loader says of the example, and what `--strict` makes of it. JSON is YAML. */
function judged(of: string, { path, grammar, wrap }: Rule, example: unknown) {
  const inner = nested(path, wrap(example)) as object;
  const provider = { name: "x", driver: of, ...inner };
  // The only key that wants a decimal point.
  const file = (root: object) => JSON.stringify(root).replace(/"gpu":(-?\d+)/, '"gpu":$1.0');
  const text =
    of === "the file" ? file(inner) : of === "the secure file" ? "{}" : file({ providers: [provider] });
  const secureText = of === "the secure file" ? file(inner) : undefined;
  const input = { text, path: "n.yaml", env: {}, drivers, ...(secureText !== undefined && { secureText }) };
  const about = ({ message }: { readonly message: string }) => message.endsWith(`write ${grammar.write}`);
  const loader = loadConfig(input).findings.filter(about);
  const strict = validateConfig({ ...input, strict: true }).findings.filter(about);
  const validator = validateConfig(input).findings.filter(about);
  return { loader, strict, validator };
}

const sections: readonly (readonly [string, Section<unknown>])[] = [
  ["the file", configurationSection as Section<unknown>],
  ["the secure file", secureFileSection as Section<unknown>],
  ...drivers.names().map((name) => [name, (drivers.get(name) as DriverConfig).keys!] as const),
];

describe.each(sections)("values of %s", (of, section) => {
  const rules = rulesOf(section);

  it("are judged in some key", () => expect(rules.length).toBeGreaterThan(1));

  it.each(rules.map((rule) => [rule.path.join("."), rule] as const))("%s", (_path, rule) => {
    for (const example of rule.grammar.right) {
      const { loader, strict } = judged(of, rule, example);
      expect([example, [...loader, ...strict].map(({ message }) => message)]).toEqual([example, []]);
    }
    for (const example of rule.grammar.wrong) {
      const { loader, strict, validator } = judged(of, rule, example);
      const severities = [loader, strict, validator].map((all) => [
        ...new Set(all.map(({ severity }) => severity)),
      ]);
      const inLoader = rule.instead === undefined ? "error" : "warning";
      // The secure file is only read by the loader.
      const [inStrict, inValidator] = of === "the secure file" ? [[], []] : [["error"], [inLoader]];
      expect([example, ...severities]).toEqual([example, [inLoader], inStrict, inValidator]);
    }
  });

  it("every number has a range, unless each number means something", () => {
    const without = unbounded(section).filter((key) => !ANY_NUMBER.has(key));
    expect(without).toEqual([]);
  });
});

/** Numbers of which each has a documented meaning: below some bound it is no limit, never, or nothing at all. */
const ANY_NUMBER = new Set([
  "max-servers",
  "max-concurrency",
  "max-projects",
  "max-pods",
  "priority",
  "max-ready-age",
  "max-hold-age",
  "build-log-retention",
  // Of the fake cloud: -1 is no limit, or always.
  ...["seed", "instances", "cores", "ram", "create-fails", "create-fails-with-external-id", "never-active"],
  ...["ends-in-error", "delete-fails", "refused", "delete-leaves-record"],
]);

function unbounded(section: Pick<Section<unknown>, "table">): string[] {
  return Object.entries(section.table).flatMap(([key, { parts }]) => {
    if (parts.group !== undefined) return unbounded({ table: parts.group });
    const takes = (value: unknown) => parts.schema.safeParse(value).success;
    const isUnbounded = takes(5) && takes(-1) && !takes("x") && parts.about.like === undefined;
    const own = isUnbounded && parts.isUnread !== true ? [key] : [];
    return [...own, ...(parts.inside === undefined ? [] : unbounded(parts.inside))];
  });
}
