import { ConnectConfigError, Keys, poolFields } from "@nodeyard/connect";
import { issueText, messageOf } from "@nodeyard/runtime";
import { parse } from "yaml";
import { z } from "zod";

const schema = z.strictObject({
  nodeyard: poolFields.nodeyard,
  ssh: poolFields.ssh,
  flavors: z
    .record(z.string(), Keys.label)
    .default({})
    .describe("labels by flavor of GARM's pools; any other flavor is a label itself"),
  "runner-user": z
    .string()
    .regex(/^[a-z_][a-z0-9_-]*$/)
    .default("runner")
    .describe("user of the nodes that runners run as"),
  "for-seconds": Keys.seconds.default(86_400).describe("how long an instance may be kept"),
  "wait-seconds": Keys.seconds.default(900).describe("how long a new instance waits for its node"),
});

/** The file that GARM names to the provider. */
export type ProviderConfig = Readonly<z.output<typeof schema>>;

/** Throws ConnectConfigError. */
export function readProviderConfig(path: string | undefined, read: (path: string) => string): ProviderConfig {
  if (path === undefined || path === "")
    throw new ConnectConfigError(
      "GARM_PROVIDER_CONFIG_FILE is not set: GARM calls this command, not a person",
    );
  let root: unknown;
  try {
    root = parse(read(path));
  } catch (cause) {
    throw new ConnectConfigError(`cannot read ${path}: ${messageOf(cause).split("\n")[0]}`, { cause });
  }
  const result = schema.safeParse(root);
  if (result.success) return result.data;
  throw new ConnectConfigError(
    `${path}: ${issueText(result.error.issues[0]!, root, { fields: Object.keys(schema.shape) })}`,
  );
}
