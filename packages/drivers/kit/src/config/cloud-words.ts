import { defined } from "@nodeyard/runtime";
import { z } from "zod";
import { TEMPLATES } from "../templates.ts";
import { launchKeys } from "./common-keys.ts";
import type { About } from "./field.ts";
import { FROM_0, type Grammar, pattern, sized } from "./grammar.ts";
import { uploadTable } from "./images.ts";
import type { Rule, Table } from "./section.ts";
import { INTEGER, NUMBER } from "./vocabulary.ts";
import { field, flag, mapping, metadata, numbers, OURS, text } from "./words.ts";

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

/** A mapping must have one of these keys, or several. */
export const atLeastOne = (what: string, ...keys: readonly string[]): Rule => [
  (value) => howMany(value, keys) > 0,
  `has no ${what}; add ${keys.join(" or ")}`,
];

/** Requires a key of a shared table that is optional in other mappings. */
export const needs = (key: string): Rule => [(value) => value[key] !== undefined, `has no ${key}; add it`];

/** Keys that only Nodeyard has. */
export const ours = <T extends Table>(table: T): T =>
  Object.fromEntries(
    Object.entries(table).map(([key, field]) => [key, field.accepted(OURS)]),
  ) as unknown as T;

/** One of the given words, checked by the validator too. Null when the key is absent and has no default. */
export const oneOf = <
  const W extends string,
  const A extends { readonly default?: W; readonly needed?: "validator" },
>(
  description: string,
  words: readonly [W, ...W[]],
  about?: A,
) =>
  field(
    description,
    about ?? {},
    z.enum(words, { error: `must be one of ${words.join(", ")}` }),
    (at, key) => {
      const value = at.text(key, about?.default ?? null);
      return value as W | (A extends { readonly default: W } ? never : null);
    },
  );

/** As `oneOf`, but null is allowed and means the same as an absent key. */
export const oneOfOrNull = <const W extends string>(description: string, words: readonly [W, ...W[]]) =>
  field(
    description,
    {},
    z.enum(words, { error: `must be one of ${words.join(", ")}, or null` }).nullable(),
    (at, key) => at.text(key, null) as W | null,
  );

/** Limits by resource name. */
export const amounts = (description: string) =>
  numbers(description, INTEGER, { like: FROM_0, instead: "leaves no room for any node" });

/** Calls per second in the file, least milliseconds between two of them in the program; 0 is no limit of either. */
export const rate = (description: string, calls: number, schema: z.ZodType = NUMBER) =>
  field(
    description,
    { default: calls, like: FROM_0, instead: "counts as 0: no limit" },
    schema,
    (at, key) => {
      const most = at.number(key, calls);
      return most > 0 ? 1_000 / most : 0;
    },
  ).as("intervalMs");

/** Whether machines are such as the cloud may take back. */
export const spot = (description: string) => flag(description, { default: false }).as("spot");

/** Whether console output is kept. */
export const consoleLog = (description: string) => flag(description, { default: false });

/** User data of machines. */
export const userData = (description: string, like?: Grammar) =>
  text(description, defined({ like })).secret().as("userData");

/** What clouds take as tags that allow 50 of them, of which Nodeyard's own take twelve. `keys`: as which names. */
export const tagGrammar = (keys: Grammar) => ({
  ...{ keys, all: sized(0, 38) },
  like: pattern("at most 256 characters", /^[\s\S]{0,256}$/, [["x", ""], ["x".repeat(257)]]),
});

/** A mapping whose values are templates. */
export const templates = (about: Omit<About, "default">) =>
  mapping("The same, from templates such as `{request.tenant_name}`.", {
    default: {} as Readonly<Record<string, unknown>>,
    ...about,
    ...TEMPLATES,
  });

/** Keys of a label for the tags of its machines. */
export const tagKeys = (description: string, grammar: ReturnType<typeof tagGrammar>) => ({
  tags: metadata(description, grammar),
  "dynamic-tags": templates(grammar),
});

/** Keys of a provider of machines. `boot`: default of `boot-timeout`, in seconds. */
export const machineKeys = (boot: number) => ({
  ...launchKeys({ boot }),
  "post-upload-hook": uploadTable["post-upload-hook"].unread(),
});

/** Note for keys that Nodepool documents and uses, but its validator refuses (docs/contract/config.md, "Honoured though rejected"). */
export const DOCUMENTED = "is accepted; Nodepool's validator does not know it";
