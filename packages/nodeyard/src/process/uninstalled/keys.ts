import { field, INTEGER, launchKeys, mapOf, type Rule, uploadTable } from "@nodeyard/driver";
import { z } from "zod";

/** What the tables of the drivers that have no package yet have in common. A driver's package takes its table over as it is. */

const howMany = (value: Readonly<Record<string, unknown>>, keys: readonly string[]) =>
  keys.filter((key) => value[key] !== undefined).length;

export const atMostOne = (...keys: readonly string[]): Rule => [
  (value) => howMany(value, keys) <= 1,
  `has more than one of ${keys.join(", ")}; keep one`,
];

export const exactlyOne = (...keys: readonly string[]): Rule => [
  (value) => howMany(value, keys) === 1,
  `needs exactly one of ${keys.join(", ")}`,
];

/** For a key of a table that is shared, where this mapping cannot do without. */
export const needs = (key: string): Rule => [(value) => value[key] !== undefined, `has no ${key}; add it`];

/** One of these words, also for the validator. */
export const oneOf = (description: string, words: readonly [string, ...string[]], about = {}) =>
  field(description, about, z.enum(words, { error: `must be one of ${words.join(", ")}` }), (at, key) =>
    at.text(key, null),
  );

/** The same, or null, which is as an absent key. */
export const oneOfOrNull = (description: string, words: readonly [string, ...string[]]) =>
  field(
    description,
    {},
    z.enum(words, { error: `must be one of ${words.join(", ")}, or null` }).nullable(),
    (at, key) => at.text(key, null),
  );

/** Limits of resources that have names of their own. */
export const amounts = (description: string) =>
  field(description, {}, mapOf(INTEGER), (at, key) => at.mapping(key) ?? {});

/** Keys of a provider of machines, with how long they take to answer, in seconds. */
export const machineKeys = (boot: number) => ({
  ...launchKeys({ boot }),
  "post-upload-hook": uploadTable["post-upload-hook"].unread(),
});

/** Documented and honoured by Nodepool, whose validator refuses it all the same (docs/contract/config.md, "Honoured though rejected"). */
export const DOCUMENTED = "is accepted; Nodepool's validator does not know it";
