import { z } from "zod";
import { launchKeys } from "./common-keys.ts";
import { uploadTable } from "./images.ts";
import type { Rule } from "./section.ts";
import { INTEGER, mapOf } from "./vocabulary.ts";
import { field } from "./words.ts";

/** What the tables of clouds have in common, beside the keys of docs/contract/config.md, "OpenStack keys". */

const howMany = (value: Readonly<Record<string, unknown>>, keys: readonly string[]) =>
  keys.filter((key) => value[key] !== undefined).length;

/** For a mapping in which these keys exclude each other. */
export const atMostOne = (...keys: readonly string[]): Rule => [
  (value) => howMany(value, keys) <= 1,
  `has more than one of ${keys.join(", ")}; keep one`,
];

/** The same, where one of them has to be there. */
export const exactlyOne = (...keys: readonly string[]): Rule => [
  (value) => howMany(value, keys) === 1,
  `needs exactly one of ${keys.join(", ")}`,
];

/** For a key of a table that is shared, where this mapping cannot do without. */
export const needs = (key: string): Rule => [(value) => value[key] !== undefined, `has no ${key}; add it`];

/** One of these words, also for the validator; null where the key is absent and has no default. */
export const oneOf = <const W extends string>(
  description: string,
  words: readonly [W, ...W[]],
  about: { readonly default?: W; readonly needed?: "validator" } = {},
) =>
  field(description, about, z.enum(words, { error: `must be one of ${words.join(", ")}` }), (at, key) => {
    const value = at.text(key, about.default ?? null);
    return value as W | null;
  });

/** The same, or null, which is as an absent key. */
export const oneOfOrNull = <const W extends string>(description: string, words: readonly [W, ...W[]]) =>
  field(
    description,
    {},
    z.enum(words, { error: `must be one of ${words.join(", ")}, or null` }).nullable(),
    (at, key) => at.text(key, null) as W | null,
  );

/** Limits of resources that have names of their own. */
export const amounts = (description: string) =>
  field(description, {}, mapOf(INTEGER), (at, key): Readonly<Record<string, number>> => {
    const limits = at.inner(key);
    return Object.fromEntries(Object.keys(limits.raw).map((name) => [name, limits.number(name, 0)]));
  });

/** Keys of a provider of machines, with how long they take to answer, in seconds. */
export const machineKeys = (boot: number) => ({
  ...launchKeys({ boot }),
  "post-upload-hook": uploadTable["post-upload-hook"].unread(),
});

/** Documented and honoured by Nodepool, whose validator refuses it all the same (docs/contract/config.md, "Honoured though rejected"). */
export const DOCUMENTED = "is accepted; Nodepool's validator does not know it";
