import { choices, issueText, type SchemaIssue, valueAt } from "@nodeyard/runtime";
import { isNode, LineCounter, parseDocument } from "yaml";
import { z } from "zod";
import { ConnectConfigError } from "./errors.ts";
import type { ConnectorKind } from "./kind.ts";

/** Of a section: it becomes a part of the names of runners and of labels of metrics. */
const name = z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, "must be lower case letters, digits and dashes");
const address = z
  .string()
  .regex(/^(\[[^\]]+\]|[^:[\]]+):\d{1,5}$/, "must be HOST:PORT, as 127.0.0.1:8080")
  .transform((text) => {
    const colon = text.lastIndexOf(":");
    return { host: text.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(text.slice(colon + 1)) };
  });

/** Values of sections of several kinds. */
export const Keys = {
  /** Where a server listens. */
  address,
  /** A file with one secret. */
  secretFile: z.string().min(1).describe("file with one word, readable by this user alone"),
  /** A label of the pool. */
  label: z.string().min(1).max(255).describe("label of the pool"),
  seconds: z.int().min(1).max(31_536_000),
  priority: z
    .string()
    .regex(/^\d{3}$/, "must be three digits; 100 is served before 200")
    .describe("three digits; 100 is served before 200"),
  /** Of another system, without a slash at its end. */
  url: z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, "")),
} as const;

/** What runners of one pool of them are leased with. */
export const runnerFields = {
  label: Keys.label,
  most: z.int().min(1).max(10_000).default(100).describe("runners at the same time"),
  priority: Keys.priority.default("200"),
} as const;
/** How long a connector of runners waits for a job to come. */
export const idleField = Keys.seconds
  .default(300)
  .describe("seconds after which a runner without a job is given up");

/** Words of every file of a connector: where the pool is, and how nodes are logged in to. */
export const poolFields = {
  nodeyard: z.strictObject({
    url: z.string().min(1).describe("http://HOST:PORT, https://HOST, or the path of a socket"),
    "token-file": Keys.secretFile.optional(),
  }),
  ssh: z
    .strictObject({
      "identity-file": z
        .string()
        .min(1)
        .optional()
        .describe("private key for nodes; default: what ssh finds"),
    })
    .default({}),
} as const;

/** The whole file; a section's other keys are those of its kind. */
export const connectFile = z.strictObject({
  nodeyard: poolFields.nodeyard.optional().describe("the pool; not needed in the process of `nodeyard up`"),
  ssh: poolFields.ssh.describe("how connectors of runners log in to nodes"),
  metrics: address.optional().describe("HOST:PORT where Prometheus finds /metrics"),
  connectors: z
    .array(
      z.looseObject({
        name: name.describe(
          "of its own: its leases and runners have it, so a connector of another name is another one",
        ),
        system: z.string().describe("what it serves: one of the sections below"),
      }),
    )
    .min(1),
});

/** A section of the file, with the kind that it is of. */
export interface Section {
  readonly name: string;
  readonly kind: ConnectorKind;
  readonly options: unknown;
}

/** `connect.yaml`. */
export type ConnectConfig = Omit<z.output<typeof connectFile>, "connectors"> & {
  readonly sections: readonly Section[];
};

/** Reads the text of `connect.yaml`. Throws ConnectConfigError with the place of the first faults, each on a line of its own. */
export function readConnectConfig(
  text: string,
  path: string,
  kinds: readonly ConnectorKind[],
): ConnectConfig {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const [broken] = document.errors;
  if (broken !== undefined) throw new ConnectConfigError(`${path}: ${broken.message.split("\n")[0]}`);
  const root: unknown = document.toJS() ?? {};
  const faults: string[] = [];
  const add = (where: readonly PropertyKey[], said: string) => {
    // A key that is missing has the place of what it should stand in.
    let at: unknown;
    for (let depth = where.length; depth >= 0 && !isNode(at); depth--)
      at = document.getIn(where.slice(0, depth), true);
    const offset = isNode(at) ? (at.range?.[0] ?? 0) : 0;
    faults.push(`${path}:${lines.linePos(offset).line}: ${said}`);
  };
  const checked = <T extends z.ZodObject>(schema: T, value: unknown, where: readonly PropertyKey[]) => {
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    for (const issue of result.error.issues as readonly SchemaIssue[]) {
      const place = [...where, ...issue.path];
      const inner = valueAt(value, issue.path);
      const fields = issue.path.length === 0 ? Object.keys(schema.shape) : [];
      add(place, issueText({ ...issue, path: [] }, inner, { where: dotted(place), fields, secret: true }));
    }
    return undefined;
  };
  const whole = checked(connectFile, root, []);
  const sections = (whole?.connectors ?? []).flatMap(({ name, system, ...rest }, index): Section[] => {
    const where = ["connectors", index];
    const kind = kinds.find((one) => one.name === system);
    const known = kinds.map((one) => one.name);
    if (kind === undefined)
      add(
        [...where, "system"],
        `connectors.${index}.system: there is no ${JSON.stringify(system)}; ${choices(system, known)}`,
      );
    if (whole?.connectors.findIndex((other) => other.name === name) !== index)
      add([...where, "name"], `connectors.${index}.name: ${name} is the name of another connector, too`);
    const options = kind && checked(kind.options, rest, where);
    return kind === undefined || options === undefined ? [] : [{ name, kind, options }];
  });
  if (whole === undefined || faults.length > 0) throw new ConnectConfigError(faults.slice(0, 10).join("\n"));
  const { connectors: _, ...others } = whole;
  return { ...others, sections };
}

function dotted(path: readonly PropertyKey[]): string {
  return path.map(String).join(".") || "the file";
}
