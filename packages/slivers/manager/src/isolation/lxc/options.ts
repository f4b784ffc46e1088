import { CLASS } from "@nodeyard/sliver-protocol";
import { z } from "zod";
import type { ImageTrialRules } from "../../core/image-trials.ts";
import { IMAGE_DIGEST, IMAGE_NAME } from "../storage/edge/archives.ts";
import { REFERENCE } from "../storage/edge/registry.ts";
import { privatePrefix } from "./names.ts";

/** Default image when the configuration names none. */
const PRESET = "debian";

/** Only characters without a meaning for any interpreter that runs as root (rule 11). */
const path = z
  .string()
  .regex(/^(?:\/[A-Za-z0-9._+-]+)+$/, "must be an absolute path of letters, digits and ._+-")
  .refine((value) => !/\/\.{1,2}(?:\/|$)/.test(value), "must not hold . or ..");

/** A range of addresses of either family. */
const RANGE = /^(?:\d{1,3}(?:\.\d{1,3}){3}\/\d{1,2}|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}\/\d{1,3})$/;
/** With at most four groups before `::`, so that the number of a sliver fits behind it. */
const PREFIX = /^[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,3}::\/64$/;

const text = (pattern: RegExp) => z.string().regex(pattern);
const sha256 = text(/^[0-9a-f]{64}$/);
const tag = text(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/);
const packages = z.array(text(/^[a-z0-9][a-z0-9+.-]{0,63}$/)).max(200);
const device = text(/^[A-Za-z][A-Za-z0-9_.-]{0,14}$/);

const image = z.union(
  [
    z.strictObject({ tar: path, sha256: sha256.optional() }),
    z.strictObject({ folder: path }),
    z.strictObject({ oci: path, tag: tag.optional() }),
    z.strictObject({ registry: z.string().max(512).regex(REFERENCE), authFile: path.optional() }),
    z.strictObject({ debian: text(/^[a-z]{1,20}$/), packages: packages.default([]) }),
  ],
  "must have tar (and sha256), folder, debian (and packages), oci (and tag) or registry (and authFile), and nothing else",
);

const fields = z.strictObject({
  /** Folder of all files of slivers. */
  folder: path.default("/var/lib/nodeyard-slivers"),
  /** Folder for archives of images that are made here; absent: within `folder`. */
  cache: path.optional(),
  /** First two numbers of the slivers' addresses. */
  network: z
    .string()
    .regex(
      /^(?:10\.(?:25[0-5]|2[0-4]\d|1?\d?\d)|172\.(?:1[6-9]|2\d|3[01])|192\.168)$/,
      "must be a private /16",
    )
    .default("10.213"),
  pool: z
    .union(
      [
        z.strictObject({ bytes: z.number().int().min(268_435_456) }),
        /** A folder on an existing btrfs. */
        z.strictObject({ folder: path }),
      ],
      "must have bytes (268435456 at least) or folder, and nothing else",
    )
    .default({ bytes: 20_000_000_000 }),
  images: z.record(z.string().regex(IMAGE_NAME), image).default({
    [PRESET]: { debian: "bookworm", packages: [] },
  }),
  /** Image of slivers that name none. */
  defaultImage: z.string().default(PRESET),
  /** A new version of an image is tried on some of the new slivers before it replaces the former one; absent: it serves at once. */
  trial: z
    .strictObject({
      /** Part of new slivers that get it. */
      percent: z.number().int().min(1).max(50).default(10),
      /** Slivers of it after which it takes over, if nothing speaks against it. */
      slivers: z.number().int().min(1).max(10_000).default(20),
      /** A trial ends after this. */
      maxAgeSeconds: z.number().int().min(60).default(86_400),
    })
    .transform(
      ({ percent, slivers, maxAgeSeconds }): ImageTrialRules => ({
        ...{ share: percent / 100, launches: slivers, maxAgeMs: maxAgeSeconds * 1000 },
      }),
    )
    .optional(),
  /** Folders that slivers may read at /cache/NAME when their documents say so: compilers' caches, mirrors of repositories. */
  caches: z.record(z.string().regex(CLASS), path).default({}),
  /** Percent of the pool for what slivers leave to later ones (a label's `caches` with a size). */
  cacheRoom: z.number().int().min(0).max(75).default(10),
  /** CPU weight of all slivers together against the rest of the machine (cgroup v2 `cpu.weight`). Absent: what their guarantees need. */
  weight: z.number().int().min(1).max(10_000).optional(),
  /** Access of slivers to the network outside of the machine; false: none. */
  outbound: z
    .union(
      [
        z.literal(false),
        z.strictObject({
          /** Absent: the interface of the default route. */
          device: device.optional(),
          /** Ranges that slivers cannot reach, except name servers in them. First of all the cloud's metadata service. */
          refuse: z.array(text(RANGE)).max(256).default(["169.254.0.0/16", "fd00:ec2::/32", "fd20:ce::/32"]),
          /** True: private addresses, translated outside. A /64: addresses of it, to which the network has a route here. Absent: no IPv6. */
          ipv6: z
            .union(
              [z.boolean(), z.string().regex(PREFIX)],
              "must be true, false or a prefix such as 2001:db8:5:6::/64",
            )
            .optional(),
        }),
      ],
      "must be false, or have device, refuse and ipv6, or some of them",
    )
    .prefault({}),
  /** From where clients can log in to slivers; absent: only from this machine. */
  inbound: z
    .strictObject({
      device,
      /** The SSH server of the sliver with index N is reached at port `firstPort` + N of this machine. */
      firstPort: z.number().int().min(1024).max(61_000).default(22_000),
    })
    .optional(),
});

/** The IPv6 prefix of slivers; undefined: they have no IPv6. */
export function prefixOf({
  network,
  outbound,
}: Pick<IsolationOptions, "network" | "outbound">): string | undefined {
  if (outbound === false || !outbound.ipv6) return undefined;
  return outbound.ipv6 === true ? privatePrefix(network) : outbound.ipv6;
}

/** The `isolation` section of `sliverd.json`: options of the LXC back ends with defaults and checks. */
export const isolationSchema = fields.superRefine(({ images, defaultImage }, context) => {
  if (Object.hasOwn(images, defaultImage) || IMAGE_DIGEST.test(defaultImage) || defaultImage === PRESET)
    return;
  const names = Object.keys(images).join(", ") || "none";
  const message = `is ${defaultImage}, which is none of images (${names}); name one of them, or add it there`;
  context.addIssue({ code: "custom", path: ["defaultImage"], message });
});

/** Options of the LXC back ends, with defaults. */
export type IsolationOptions = z.output<typeof isolationSchema>;
