import { z } from "zod";
import { TEMPLATES } from "../templates.ts";
import { launchKeys } from "./common-keys.ts";
import { FROM_0, type Grammar, pattern, sized } from "./grammar.ts";
import { uploadTable } from "./images.ts";
import type { Rule } from "./section.ts";
import { INTEGER, mapOf } from "./vocabulary.ts";
import { field, mapping, metadata } from "./words.ts";

/** Keys and rules that the tables of clouds share, besides the keys of docs/contract/config.md, "OpenStack keys". */

const howMany = (value: Readonly<Record<string, unknown>>, keys: readonly string[]) =>
  keys.filter((key) => value[key] !== undefined).length;

/** A mapping may have at most one of these keys. */
export const atMostOne = (...keys: readonly string[]): Rule => [
  (value) => howMany(value, keys) <= 1,
  `has more than one of ${keys.join(", ")}; keep one`,
];

/** A mapping must have exactly one of these keys. */
export const exactlyOne = (...keys: readonly string[]): Rule => [
  (value) => howMany(value, keys) === 1,
  `needs exactly one of ${keys.join(", ")}`,
];

/** Requires a key of a shared table that is optional in other mappings. */
export const needs = (key: string): Rule => [(value) => value[key] !== undefined, `has no ${key}; add it`];

/** One of the given words, checked by the validator too. Null when the key is absent and has no default. */
export const oneOf = <const W extends string>(
  description: string,
  words: readonly [W, ...W[]],
  about: { readonly default?: W; readonly needed?: "validator" } = {},
) =>
  field(description, about, z.enum(words, { error: `must be one of ${words.join(", ")}` }), (at, key) => {
    const value = at.text(key, about.default ?? null);
    return value as W | null;
  });

/** As `oneOf`, but null is allowed and means the same as an absent key. */
export const oneOfOrNull = <const W extends string>(description: string, words: readonly [W, ...W[]]) =>
  field(
    description,
    {},
    z.enum(words, { error: `must be one of ${words.join(", ")}, or null` }).nullable(),
    (at, key) => at.text(key, null) as W | null,
  );

/** Limits by resource name; the names are not fixed. */
export const amounts = (description: string) =>
  field(
    description,
    { like: FROM_0, instead: "leaves no room for any node" },
    mapOf(INTEGER),
    (at, key): Readonly<Record<string, number>> => {
      const limits = at.inner(key);
      return Object.fromEntries(Object.keys(limits.raw).map((name) => [name, limits.number(name, 0)]));
    },
  );

/** What clouds take as tags that allow 50 of them, of which Nodeyard's own take twelve. `keys`: as which names. */
export const tagGrammar = (keys: Grammar) => ({
  ...{ keys, all: sized(0, 38) },
  like: pattern("at most 256 characters", /^[\s\S]{0,256}$/, [["x", ""], ["x".repeat(257)]]),
});

/** Keys of a label for the tags of its machines. */
export const tagKeys = (description: string, grammar: ReturnType<typeof tagGrammar>) => ({
  tags: metadata(description, grammar),
  "dynamic-tags": mapping("The same, from templates such as `{request.tenant_name}`.", {
    default: {} as Readonly<Record<string, unknown>>,
    ...grammar,
    ...TEMPLATES,
  }),
});

/** Keys of a provider of machines. `boot`: default of `boot-timeout`, in seconds. */
export const machineKeys = (boot: number) => ({
  ...launchKeys({ boot }),
  "post-upload-hook": uploadTable["post-upload-hook"].unread(),
});

/** Note for keys that Nodepool documents and uses, but its validator refuses (docs/contract/config.md, "Honoured though rejected"). */
export const DOCUMENTED = "is accepted; Nodepool's validator does not know it";
