import { CLASS, NAME, NODE_ID, parseKeySet, SliverProtocolError, sshKey } from "@nodeyard/sliver-protocol";
import { z } from "zod";
import { DaemonConfigError } from "../errors.ts";
import { isolationSchema } from "../isolation/lxc/options.ts";
import { readJson } from "../read-json.ts";

const whole = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const path = z.string().regex(/^\/[^\0\n]*$/, "must be an absolute path");
const device = z.string().regex(/^\/dev(?:\/[A-Za-z0-9_+-][A-Za-z0-9._+-]*)+$/, "must be a path below /dev");
const devices = z
  .array(device)
  .min(1)
  .max(16)
  .transform((files) => files.join(" "));
const httpsUrl = z
  .string()
  .refine(isHttps, "must be a URL that begins with https://, without a user and a password");

const schema = z.strictObject({
  /**
   * This node's id. Documents and tickets for other nodes are refused. Absent: an id is made at the first start and kept in the state
   * folder, for machines that are copies of one image.
   */
  node: z.string().regex(NODE_ID).optional(),
  /** Name of a back end of this program. */
  backEnd: z.string(),
  /** The old manager whose API `/` has, and whose defaults and minimums apply. */
  profile: z.enum(["r0", "v2"]).default("v2"),
  stateFolder: path,
  runFolder: path.default("/run/nodeyard-sliver"),
  /** The key set that is trusted at first. Later key sets are stored by rotations. */
  keySet: z.unknown(),
  /**
   * The amounts that slivers may be guaranteed. Absent: CPU as in `machine.cpu`; memory and disk as found, without what machine and images
   * need. Cores and network are not checked.
   */
  capacity: z
    .strictObject({
      cpu: whole.optional(),
      cores: whole.optional(),
      memory: whole.optional(),
      net: whole.optional(),
      disk: whole.optional(),
    })
    .default({}),
  machine: z
    .strictObject({
      /** Per mille of one CPU for all slivers; absent: all CPUs. */
      cpu: whole.min(1).optional(),
      /** bit/s of all slivers together; absent: the speed of the interface with the default route. */
      link: whole.min(1).optional(),
      /** For each core, the threads of its physical core; absent: whole cores are not assigned. */
      siblings: z.array(z.array(whole)).default([]),
      highestIndex: whole.min(1).max(4000).default(256),
      /** Slivers that are kept running without a login, of the kinds that were asked for last. A document gets one at once. */
      spares: whole.max(64).default(0),
      /** Devices by class, each for one sliver at a time: its file, or all files of it. One that is listed twice may be had by two. */
      devices: z.record(z.string().regex(CLASS), z.array(z.union([device, devices])).max(64)).default({}),
    })
    .prefault({}),
  /** The Unix user of all control accounts. Its only program is the forwarder. */
  control: z
    .strictObject({
      uid: whole,
      keys: z.array(z.string()).default([]),
      keysFile: path.optional(),
      forwarder: path.default("/usr/bin/sliver-forward"),
    })
    .default({ uid: 0, keys: [], forwarder: "/usr/bin/sliver-forward" }),
  /** Absent: no TCP listener. */
  tcp: z
    .strictObject({
      host: z.string().default("127.0.0.1"),
      port: whole.max(65_535).default(812),
      tokens: z
        .array(
          z.strictObject({
            sha256: z.string().regex(/^[0-9a-f]{64}$/),
            account: z.union([z.string().regex(NAME), z.enum(["root", "control"])]),
            /** Generation of the sliver with that name; 0 where documents have none. */
            generation: whole.default(0),
          }),
        )
        .max(64)
        .default([]),
    })
    .optional(),
  /** Polls a PLC for GetSlivers instead of using a launcher's signed documents. */
  plc: z
    .strictObject({
      url: httpsUrl,
      /** PEM file, read for each poll; absent: the authorities of the system. */
      caFile: path.optional(),
      /** Of a session that is made by others; or `nodeKeyFile`. */
      session: z.string().min(1).max(512).optional(),
      /** File with the node's key (of `plnode.txt`, NODE_KEY): sessions are made with it, and made anew when they end. `node` is its id. */
      nodeKeyFile: path.optional(),
      periodSeconds: z.number().min(1).max(86_400).default(600),
    })
    .refine(
      ({ session, nodeKeyFile }) => (session === undefined) !== (nodeKeyFile === undefined),
      "must have session or nodeKeyFile, and not both",
    )
    .optional(),
  /** Fetches signed documents from a URL, in addition to those that launchers deliver. */
  documents: z
    .strictObject({
      url: httpsUrl,
      /** URL to which reports are sent after each poll; absent: none are sent. */
      reportUrl: httpsUrl.optional(),
      /** PEM files, read for each poll. Absent: the authorities of the system, and no client certificate. */
      caFile: path.optional(),
      certFile: path.optional(),
      keyFile: path.optional(),
      periodSeconds: z.number().min(1).max(86_400).default(60),
    })
    .refine(
      ({ certFile, keyFile }) => (certFile === undefined) === (keyFile === undefined),
      "certFile and keyFile belong together; name both, or neither",
    )
    .optional(),
  /** Settings of back ends that make real slivers. */
  isolation: isolationSchema.prefault({}),
  heartbeatSeconds: z.number().min(1).max(3600).default(10),
  startSpacingSeconds: z.number().min(0).max(60).default(3),
});

/** The content of `sliverd.json` with defaults, a node id, and checked keys. */
export type DaemonConfig = Omit<z.output<typeof schema>, "keySet" | "node"> & {
  readonly node: string;
  readonly keySet: ReturnType<typeof parseKeySet>;
};

/**
 * Parses the configuration. `place` is its file, for messages. `ownId` returns the id of a machine whose file has none, by its state
 * folder. Throws DaemonConfigError.
 */
export function parseConfig(
  text: string,
  place: string,
  ownId?: (stateFolder: string) => string,
): DaemonConfig {
  const data = readJson(schema, text, (what, cause) => new DaemonConfigError(`${place}${what}`, { cause }));
  const node = data.node ?? ownId?.(data.stateFolder);
  if (node === undefined) throw new DaemonConfigError(`${place}: node: names no id`);
  try {
    const control = { ...data.control, keys: data.control.keys.map(sshKey) };
    return { ...data, node, control, keySet: parseKeySet(data.keySet) };
  } catch (cause) {
    if (!(cause instanceof SliverProtocolError)) throw cause;
    throw new DaemonConfigError(`${place}: ${cause.message}`, { cause });
  }
}

/** Requires HTTPS; plain HTTP is allowed to this machine only, for tests. URLs must contain no secrets, because they are logged. */
function isHttps(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "") return false;
  return url.protocol === "https:" || (url.protocol === "http:" && /^127(?:\.\d+){3}$/.test(url.hostname));
}
