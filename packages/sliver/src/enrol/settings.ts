import { NODE_ID, parseKeySet, SliverProtocolError, sshKey } from "@nodeyard/sliver-protocol";
import { z } from "zod";
import { EnrolError } from "./errors.ts";

const schema = z.strictObject({
  v: z.literal(1),
  /** Absent: what the machine is called already, else its host name. */
  node: z.string().regex(NODE_ID).optional(),
  keySet: z.unknown(),
  /** How the key set followed earlier ones, for a machine that has one of those. */
  rotations: z.array(z.string()).max(64).default([]),
  /** Of launchers that may call, `type base64` each. */
  controlKeys: z.array(z.string()).min(1).max(64),
  backEnd: z.enum(["account", "container"]).default("account"),
  /** Replaces parts of the daemon's file. */
  sliverd: z.record(z.string(), z.unknown()).default({}),
  installPackages: z.boolean().default(false),
  /** An image is made: nothing is started, reloaded or asked of a running system. */
  image: z.boolean().default(false),
});

/** What a launcher wants a machine to be. */
export type EnrolSettings = Omit<z.output<typeof schema>, "keySet"> & {
  readonly keySet: ReturnType<typeof parseKeySet>;
};

/** Throws EnrolError. */
export function parseSettings(text: string): EnrolSettings {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new EnrolError("the settings are not JSON", { cause });
  }
  const result = schema.safeParse(value);
  if (!result.success) {
    const [issue] = result.error.issues;
    throw new EnrolError(`settings: ${issue?.path.join(".") || "the whole"}: ${issue?.message}`);
  }
  try {
    const controlKeys = result.data.controlKeys.map(sshKey);
    return { ...result.data, controlKeys, keySet: parseKeySet(result.data.keySet) };
  } catch (cause) {
    if (!(cause instanceof SliverProtocolError)) throw cause;
    throw new EnrolError(`settings: ${cause.message}`, { cause });
  }
}
