import { facadeFields, Keys } from "@nodeyard/connect";
import { z } from "zod";

/** Four hours: longer than jobs that run well, and short enough for a node whose owner has died. */
const FOR_SECONDS = 4 * 3_600;

const typeSchema = z.strictObject({
  label: Keys.label,
  "for-seconds": Keys.seconds.default(FOR_SECONDS).describe("how long an owner may have one"),
  "heartbeat-seconds": z
    .int()
    .min(30)
    .max(86_400)
    .optional()
    .describe("an owner must update one at least so often; otherwise it need not"),
  priority: Keys.priority.optional(),
});

/** How nodes of one type of resource are leased. */
export type TypeOptions = Readonly<z.infer<typeof typeSchema>>;

export const optionsSchema = z.strictObject({
  ...facadeFields,
  types: z
    .record(z.string().min(1), typeSchema)
    .optional()
    .describe("by name of the type; without it each label is a type of the same name"),
  "wait-seconds": z
    .int()
    .min(0)
    .max(30)
    .default(5)
    .describe("how long an acquire waits for a node before it answers 404"),
  "request-ttl-seconds": z
    .int()
    .min(1)
    .max(3_600)
    .default(30)
    .describe("a request loses its place in the queue when no caller has asked for it for so long"),
});

/** The section of a connector of Boskos. */
export type Options = Readonly<z.infer<typeof optionsSchema>>;

/** The type of a label that has no entry in the table. */
export function optionsOf(label: string): TypeOptions {
  return typeSchema.parse({ label });
}
