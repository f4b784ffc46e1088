import { idleField, Keys, runnerFields } from "@nodeyard/connect";
import { z } from "zod";

/** Jobs for one label of the pool. */
const rule = z.strictObject({
  "runs-on": z
    .array(z.string().min(1).max(255))
    .min(1)
    .describe("labels that its runners have; a job is taken whose runs-on has no other"),
  ...runnerFields,
  time: Keys.seconds.default(10_800).describe("seconds that a node may be kept, waiting included"),
});

/** Keys of a section of Gitea. */
export const options = z.strictObject({
  url: Keys.url.describe("of Gitea"),
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
    .describe("the first rule that has all labels of a job counts")
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
  webhook: z
    .strictObject({
      listen: Keys.address.describe("HOST:PORT"),
      "secret-file": Keys.secretFile,
    })
    .optional()
    .describe(
      "where Gitea's webhook of workflow jobs is received, which is signed with this secret; jobs are looked at when it comes, and every `poll`",
    ),
  poll: Keys.seconds.default(3).describe("seconds between two looks at the jobs"),
  idle: idleField,
});
export type Options = z.output<typeof options>;
export type Rule = Options["runners"][number];
