import { Keys } from "@nodeyard/connect";
import { z } from "zod";

/** Jobs for one label of the pool. */
const rule = z.strictObject({
  "runs-on": z
    .array(z.string().min(1).max(255))
    .min(1)
    .describe("labels that its runners have; a job is taken whose runs-on has no other"),
  label: Keys.label.describe("label of the pool"),
  most: z.int().min(1).max(10_000).default(100).describe("runners at the same time"),
  time: Keys.seconds.default(10_800).describe("seconds that a node may be kept, waiting included"),
  priority: z
    .string()
    .regex(/^\d{3}$/, "must be three digits; 100 is served before 200")
    .default("200"),
});

/** Keys of a section of Gitea. */
export const options = z.strictObject({
  url: z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, "")),
  "token-file": Keys.secretFile,
  scope: z
    .string()
    .regex(/^(instance|[\w.-]+(\/[\w.-]+)?)$/, "must be instance, an organization, or OWNER/REPOSITORY")
    .describe(
      "whose jobs are served: instance (needs a token of an administrator), an organization, or OWNER/REPOSITORY",
    ),
  runners: z
    .array(rule)
    .min(1)
    .refine(
      (rules) => new Set(rules.map((one) => one["runs-on"].join())).size === rules.length,
      "must have each runs-on once",
    ),
  start: z
    .string()
    .min(1)
    .default("act_runner daemon")
    .describe(
      "command of sh that starts the runner on a node, beside its .runner file; it has to end after one job",
    ),
  poll: Keys.seconds.default(3).describe("seconds between two looks at the jobs"),
  idle: Keys.seconds.default(300).describe("seconds after which a runner without a job is given up"),
});
export type Options = z.output<typeof options>;
export type Rule = Options["runners"][number];
