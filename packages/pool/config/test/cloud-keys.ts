import { describe, expect, it } from "vitest";
import { exitCode } from "./support.ts";

export type ByLevel<T> = Readonly<Record<string, T>>;
export type Values = readonly [good: readonly string[], bad: readonly string[]];

/** A cloud's keys as Nodepool's validator knows them, by the mapping in which they are: the provider, its lists, `pool` and `label`. */
export interface CloudKeys {
  /** The text of a file with one provider; each mapping in one line. */
  readonly file: (changes: ByLevel<string>) => string;
  /** All keys, by their type; those that the validator wants are in `needed`, too. */
  readonly keys: ByLevel<ByLevel<readonly string[]>>;
  /** Values of the cloud's own types, and values that the validator refuses; null is refused unless it is listed. */
  readonly types?: Readonly<Record<string, Values>>;
  /** What each mapping must have, and nothing else. */
  readonly needed: ByLevel<ByLevel<string>>;
  /** Keys that stand in place of `image-id`. */
  readonly images?: RegExp;
}

export const words = (text: string) => text.split(" ");
export const CONNECTION = words("connection-type python-path shell-type");

const TYPES: Readonly<Record<string, Values>> = {
  text: [["x", "''"], words("5 1.5 true [x] {a:1} null")],
  integer: [words("5 0 -1 1000000000000 true"), words("x '5' 1.5 [5] null")],
  flag: [words("true false"), words("x 1 'true' null")],
  mapping: [
    ["{}", "{a: b}", "{a: 5}", "{a: [b]}"],
    ["[a]", "x", "null"],
  ],
};

/** How `file` is made: of a provider whose mappings are given, some of them changed. */
export function fileOf(driver: string, whole: ByLevel<string>): (changes?: ByLevel<string>) => string {
  return (changes = {}) => {
    const { provider, pool, label, ...lists } = { ...whole, ...changes };
    const listed = Object.entries(lists).map(([key, entry]) => `, ${key}: [{${entry}}]`);
    return `labels: [{name: a}]
diskimages: [{name: i}]
providers:
  - {name: x, driver: ${driver}, ${provider}${listed.join("")}, pools: [{${pool}, labels: [{${label}}]}]}`;
  };
}

export function describeKeys(driver: string, { file, keys, types, needed, images = /^$/ }: CloudKeys): void {
  const yaml = (fields: ByLevel<string>) =>
    Object.entries(fields)
      .map(([key, value]) => `${key}: ${value}`)
      .join(", ");
  const least = Object.fromEntries(Object.entries(needed).map(([level, fields]) => [level, yaml(fields)]));
  const codeOf = (level: string, fields: ByLevel<string>) =>
    exitCode(file({ ...least, [level]: yaml(fields) }));

  describe(`each key of ${driver}`, () => {
    it.each(Object.keys(keys))("of a %s takes what Nodepool's validator takes, and nothing else", (level) => {
      const { "image-id": _, ...others } = needed[level]!;
      const wrong = Object.entries(keys[level]!).flatMap(([type, names]) =>
        names.flatMap((key) => {
          const base = images.test(key) ? others : needed[level];
          const judged = (values: readonly string[], code: number) =>
            values
              .filter((value) => codeOf(level, { ...base, [key]: value }) !== code)
              .map((value) => `${key}: ${value} is not judged with ${code}`);
          const [good, bad] = { ...TYPES, ...types }[type]!;
          return [...judged(good, 0), ...judged(bad, 1)];
        }),
      );
      expect(wrong).toEqual([]);
    });

    it.each(Object.keys(keys))(
      "of a %s that Nodepool's validator wants, and none that it does not know",
      (level) => {
        expect(codeOf(level, needed[level]!)).toBe(0);
        expect(codeOf(level, { ...needed[level], "no-such-key": "x" })).toBe(1);
        for (const missing of Object.keys(needed[level]!)) {
          const { [missing]: _, ...others } = needed[level]!;
          expect([missing, codeOf(level, others)]).toEqual([missing, 1]);
        }
      },
    );
  });
}
