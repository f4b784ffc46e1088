import { facadeFields, Keys } from "@nodeyard/connect";
import { z } from "zod";
import { meets } from "./constraints.ts";

const pattern = z.string().min(1);

const ruleSchema = z.strictObject({
  label: Keys.label,
  arch: pattern.optional().describe("architecture; this and the next two may have * for any text"),
  compose: pattern.optional().describe("image that the guest asks for"),
  keyname: pattern.optional().describe("name of the SSH key that the nodes accept"),
  pool: z.string().min(1).optional().describe("a guest that names a pool gets a rule of this pool alone"),
  hardware: z
    .record(z.string(), z.unknown())
    .default({})
    .describe(
      "what the nodes have, in the form of tmt's hardware; a guest that wants what is not named here is not meant",
    ),
  "for-seconds": Keys.seconds.default(4 * 3_600).describe("how long a guest may be kept"),
  priority: Keys.priority.optional(),
});

/** Guests that get nodes of one label. */
export type Rule = Readonly<z.infer<typeof ruleSchema>>;

export const optionsSchema = z.strictObject({
  ...facadeFields,
  rules: z.array(ruleSchema).min(1).describe("the first one that fits decides"),
});

/** The section of a connector of Artemis. */
export type Options = Readonly<z.infer<typeof optionsSchema>>;

/** What decides which rule fits. */
export interface Wanted {
  readonly arch: string;
  readonly compose: string;
  readonly keyname: string;
  readonly pool?: string;
  readonly constraints: unknown;
}

/** The rule for a guest; undefined: none fits. */
export function ruleFor(rules: readonly Rule[], { constraints, ...wanted }: Wanted): Rule | undefined {
  return rules.find(
    (rule) =>
      (["arch", "compose", "keyname"] as const).every((key) => fits(rule[key] ?? "*", wanted[key])) &&
      (wanted.pool === undefined || wanted.pool === rule.pool) &&
      meets(constraints ?? {}, { arch: wanted.arch, ...rule.hardware }),
  );
}

function fits(glob: string, text: string): boolean {
  const escaped = glob.split("*").map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${escaped.join(".*")}$`, "s").test(text);
}
