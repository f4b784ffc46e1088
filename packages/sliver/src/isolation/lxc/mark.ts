import type { Rspec } from "@nodeyard/sliver-protocol";
import { RESOURCES } from "@nodeyard/sliver-protocol";
import { z } from "zod";

const whole = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const schema = z.object({
  v: z.literal(1),
  name: z.string(),
  generation: whole,
  /** What its root is made from. */
  root: z.enum(["account", "container"]),
  /** KiB that its root may hold. */
  disk: whole,
  /** False until it can be started: what a crash left is made anew. */
  made: z.boolean(),
  applied: z
    .strictObject({
      digest: z.string(),
      effective: z
        .record(z.string(), whole)
        .refine((value) => RESOURCES.every((name) => value[name] !== undefined), "lacks a resource")
        .transform((value) => value as Rspec),
    })
    .optional(),
});

/** What is known of a sliver besides its index and incarnation, which its folder's name tells. */
export type Mark = z.output<typeof schema>;

export function markText(mark: Mark): string {
  return `${JSON.stringify(mark, undefined, 2)}\n`;
}

/** Undefined for a mark that is damaged: its sliver is there, and is broken. */
export function readMark(text: string): Mark | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
