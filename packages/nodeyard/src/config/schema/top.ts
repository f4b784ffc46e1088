import { bool, closed, float, int, list, listOf, mapOf, str, strOrInt } from "@nodeyard/driver";
import { z } from "zod";

const server = closed({
  host: str("Host name or address; IPv6 without brackets."),
  port: int({ description: "Port.", default: 2281 }),
  chroot: str("Path below which the tree is; the same on every server that has one."),
});

const tls = closed(
  {
    cert: str("PEM file of the client's certificate."),
    key: str("PEM file of its key."),
    ca: str("PEM file of the authority that signed the servers'."),
  },
  [],
  "All three, or the connection is plain TCP.",
);

const label = closed(
  {
    name: str("What clients ask for."),
    "min-ready": int({ description: "Ready nodes to keep in stock.", default: 0 }),
    "max-ready-age": int({
      description: "Ready nodes at least this old are replaced; 0: never.",
      default: 0,
      unit: "s",
    }),
  },
  ["name"],
);

const diskimage = closed(
  {
    name: str("Name of the image."),
    abstract: bool({ description: "Only a parent of others: never built.", default: false }),
    parent: str("The entry whose values this one starts from."),
    formats: listOf(str(), "Formats to build beside those that providers need."),
    "keep-formats": listOf(str(), "Formats kept on disk despite `delete-after-upload`."),
    "delete-after-upload": bool({
      description: "Delete local files once uploaded everywhere.",
      default: false,
    }),
    elements: listOf(str(), "Elements, after those of the parents."),
    "env-vars": mapOf(str(), "Environment of the build, over that of the parents."),
    release: strOrInt("Release of the distribution, for the build."),
    "rebuild-age": int({ description: "Age at which a build is replaced.", default: 86_400, unit: "s" }),
    "rebuild-on-change": bool({
      description:
        "Build again when elements in `elements-dir`, `env-vars`, `release` or the build's command change, on the host that built last.",
      default: false,
    }),
    canary: closed({
      percent: int({
        description: "Part of launches that boot a new build, 1 to 50.",
        default: 10,
        unit: "%",
      }).meta({
        description:
          "A new build boots a part of the launches first, and takes over or is rolled back by what they show.",
      }),
      launches: int({
        description: "Launches of the new build after which it takes over, if nothing speaks against it.",
        default: 20,
      }),
      "max-age": int({ description: "A trial ends after this.", default: 86_400, unit: "s" }),
    }),
    "build-timeout": int({ description: "A build is ended after this.", default: 28_800, unit: "s" }),
    pause: bool({ description: "No builds.", default: false }),
    "dib-cmd": str({ description: "Build command.", default: "disk-image-create" }),
    "build-command": listOf(
      str(),
      "Program and arguments that leave `$DIB_IMAGE_FILENAME.<format>` for each of `$NODEYARD_IMAGE_FORMATS`, in place of diskimage-builder.",
    ),
    username: str({ description: "Login user of nodes.", default: "zuul" }),
    "python-path": str({ description: "Ansible's interpreter on nodes.", default: "auto" }),
    "shell-type": str("Ansible's shell type on nodes."),
    metadata: z
      .custom((value) => typeof value === "object" && value !== null && !Array.isArray(value), {
        error: "must be a mapping",
      })
      .meta({ type: "object", description: "Metadata of uploads; never inherited." }),
  },
  ["name"],
);

const tenantLimits = mapOf(z.unknown(), "Keys of other resources are limits of their own name.")
  .superRefine((value, context) => {
    for (const [key, amount] of Object.entries(value as Record<string, unknown>)) {
      const right =
        key === "tenant-name" ? typeof amount === "string" : ["number", "boolean"].includes(typeof amount);
      const message =
        key === "tenant-name" ? "must be a string" : "must be an integer, without quotes or decimal point";
      if (!right) context.addIssue({ code: "custom", path: [key], message, input: amount });
    }
  })
  .meta({
    type: "object",
    properties: {
      "tenant-name": { type: "string", description: "The tenant." },
      "max-servers": { type: "integer", description: "Nodes at once.", default: "no limit" },
      "max-cores": { type: "integer", description: "Cores at once.", default: "no limit" },
      "max-ram": { type: "integer", description: "Memory at once.", unit: "MiB", default: "no limit" },
      "max-volumes": { type: "integer", description: "Volumes at once.", default: "no limit" },
      "max-volume-gb": {
        type: "integer",
        description: "Size of all volumes.",
        unit: "GB",
        default: "no limit",
      },
    },
    additionalProperties: { type: "integer" },
  });

const webapp = closed(
  {
    port: int({ description: "Port.", default: 8005 }),
    listen_address: str({ description: "Address to listen on.", default: "0.0.0.0" }),
  },
  [],
  "Where `nodeyard launcher` serves lists, health and metrics by HTTP; `nodeyard up` does so by TCP only where this stands.",
);

/** The file but for the insides of providers (docs/contract/config.md, "Validator and loader"). */
export const topSchema = closed({
  "zookeeper-servers": listOf(server, "The ensemble."),
  "zookeeper-tls": tls,
  "zookeeper-timeout": float({ description: "Session timeout.", default: 10, unit: "s" }),
  labels: listOf(label, "Labels that clients may ask for."),
  diskimages: listOf(diskimage, "Images that the builder makes."),
  providers: list("Where nodes come from; the keys depend on `driver`."),
  webapp,
  "elements-dir": str("Where build elements are looked for."),
  "images-dir": str("Where built images are kept; the builder needs it."),
  "build-log-dir": str({ description: "Where logs of builds go.", default: "/var/log/nodepool/builds" }),
  "build-log-retention": int({ description: "Old logs kept per image.", default: 7 }),
  "max-hold-age": int({
    description: "Held nodes are deleted at this age; 0 or less: never.",
    default: 0,
    unit: "s",
  }),
  "max-failed-launches-per-hour": int({
    description:
      "Of one label, in all its places together; beyond it nothing is launched of it for a while. Of a label of which nothing has worked yet, no more are begun at once. Unknown to the old launcher.",
    default: 60,
  }),
  "journal-max-age": int({
    description:
      "What the launcher notes for `explain` is forgotten at this age; at least 60. Unknown to the old launcher.",
    default: 604_800,
    unit: "s",
  }),
  "journal-max-size": int({
    description: "Size of the journal in the state folder, at least 5. Unknown to the old launcher.",
    default: 500,
    unit: "MB",
  }),
  "tenant-resource-limits": listOf(tenantLimits, "What the nodes of one tenant may use together."),
});

/** Keys of every provider (docs/contract/config.md, "Providers and drivers"); `pools` and the rest are the driver's. */
export const providerKeys = {
  name: str("Unique name of the provider."),
  driver: str({
    description:
      "Which driver it is for: a name, `npm:PACKAGE`, or a path that starts with `./`, `../` or `/`.",
    default: "openstack",
  }),
  "max-concurrency": int({
    description: "Launches at once; negative: no limit, 0: no request is looked at.",
    default: -1,
  }),
  priority: int({ description: "Lower is preferred.", default: 100 }),
} as const;

/** Keys that the old validator rejects though they are documented and have effect (docs/contract/config.md, "Honoured though rejected"). */
export const honoured: readonly string[] = ["diskimages.*.shell-type"];
