import { type Grammar, Is, Key, messageOf, type Reader, type Values } from "@nodeyard/driver";
import {
  CLASS,
  IMAGE,
  MAX_AMOUNT,
  type Resource,
  type SliverSpecInput,
  sshKey,
  TRACE_TAG,
} from "@nodeyard/sliver-protocol";
import { type CacheUser, cachesKey, cacheTags, volumesOf } from "./caches.ts";
import { LENT } from "./lending/index.ts";

/** How a key of an amount is read and shown. */
interface AmountAbout {
  /** How many units of the resource one unit of the key is. */
  readonly scale?: number;
  readonly unit?: string;
  /** Amount for an absent key. Without it the manager's default applies. */
  readonly default?: number;
  /** The default for the reference page. */
  readonly shown?: string;
  readonly like?: Grammar;
}

/** A key with a whole number in its own unit. Its value is in the unit of the resource; undefined: the manager decides. */
const amount = (description: string, { scale = 1, ...about }: AmountAbout) =>
  Key.integer(description, {
    default: undefined,
    like: Is.whole(0, Math.floor(MAX_AMOUNT / scale)),
    ...about,
  }).map((value) => (value === undefined ? undefined : value * scale));

/**
 * All amounts of a label. Guarantees always have a value, so that a label's need does not depend on defaults of the managers. Other amounts
 * are only set when the file sets them.
 */
const amounts = {
  "cpu-guarantee": amount("CPU that it has under any contention.", {
    unit: "thousandths of a core",
    default: 0,
  }),
  "cpu-share": amount("Part of what guarantees leave; 32 is a usual share, 64 twice as much.", {
    shown: "32",
  }),
  "cpu-cap": amount("CPU at most; 0: no cap.", { unit: "thousandths of a core", shown: "0" }),
  cores: amount("Whole cores of its own.", { default: 0 }).as("cpuCores"),
  "memory-guarantee": amount("Memory that others cannot take.", { scale: 1024, unit: "MiB", default: 0 }),
  memory: amount("Memory at most; 0: three quarters of what all slivers may have.", {
    scale: 1024,
    unit: "MiB",
    shown: "0",
  }).as("memoryCap"),
  pids: amount("Processes and threads at most.", { shown: "4096" }),
  disk: amount("Disk at most, promised as well.", { scale: 1024, unit: "MiB", default: 2048 }),
  "net-guarantee": amount("Traffic that it has under any contention.", {
    scale: 1000,
    unit: "kbit/s",
    default: 0,
  }),
  "net-cap": amount("Traffic at most.", { scale: 1000, unit: "kbit/s", shown: "1000000" }),
  connections: amount("Connections at most; 0: 4,096.", { shown: "0" }),
  "io-read": amount("Reading from its disk at most; 0: no cap.", { scale: 1024, unit: "KiB/s", shown: "0" }),
  "io-write": amount("Not enforced: every sync of the machine would wait for writes that wait at a cap.", {
    scale: 1024,
    unit: "KiB/s",
    shown: "0",
  }),
  "io-read-ops": amount("Reads from its disk at most; 0: no cap.", { unit: "operations/s", shown: "0" }),
  "io-write-ops": amount("Not enforced, as io-write.", { unit: "operations/s", shown: "0" }),
  "io-weight": amount(
    "Part of the disk's time while other slivers want it too, 1 to 1000; 100 is usual, 200 twice as much.",
    { shown: "100", like: Is.whole(1, 1000) },
  ),
};

/** Amounts by resource, in the units of the protocol (packages/slivers/protocol/src/grammar.ts). */
export type Amounts = Readonly<Partial<Record<Resource, number>>>;

/** Names that the owners of machines have given to things of theirs. */
const names = (about: string) =>
  Key.texts(about, {
    default: [],
    like: Is.pattern("a name of lower-case letters, digits, _ and -", CLASS, [["kvm"], ["/dev/kvm", "KVM"]]),
  });

/** Keys of a sliver: of a label, or of the `sliver` mapping of a metastatic label. */
export const sliverKeys = {
  rspec: Key.group(amounts).map((all, at): Amounts => {
    const { memoryGuarantee = 0, memoryCap = 0 } = all;
    // Caps of CPU and traffic are raised to the guarantee. Memory above its cap would be killed, so this is an error.
    if (memoryCap > 0 && memoryGuarantee > memoryCap)
      at.error(
        "memory-guarantee",
        `is ${memoryGuarantee / 1024} with memory ${memoryCap / 1024}: a guarantee cannot exceed the cap; lower it, or raise memory`,
      );
    for (const [key, name] of [
      ["io-write", "ioWrite"],
      ["io-write-ops", "ioWriteOps"],
    ] as const)
      if ((all[name] ?? 0) > 0)
        at.warn(
          key,
          "is without effect: every sync of the machine would wait for writes that wait at a cap; use io-weight",
        );
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  }),
  image: Key.text(
    "Image of its root, by a name of the machine's or a digest; for the back end `container`.",
    {
      shown: "the machine's",
      like: Is.pattern("a name of lower-case letters and digits, or sha256:<digest>", IMAGE, [
        ["debian-12", `sha256:${"0".repeat(64)}`],
        ["Debian 12", ""],
      ]),
    },
  ),
  nesting: Key.flag(
    "Containers may be run in it (podman, Docker): it may make namespaces of its own and mount in them, which opens more of the kernel to it.",
    { default: false },
  ),
  devices: names(
    "Classes of devices (`machine.devices` in the machine's `sliverd.json`), of each of which it has one for itself; one that is named twice, two.",
  ),
  caches: cachesKey,
  initscript: Key.text("Shell script that runs in each sliver when it starts, as its user.", { default: "" }),
};

/** What a label says of its slivers: a pool's, or those of slots. */
export interface SliverSettings extends Values<typeof sliverKeys> {
  /** `type base64`, each. */
  readonly authorizedKeys: readonly string[];
  /** Idle slivers lend their caps to busy ones. */
  readonly lends: boolean;
}

/** The entry of a document. `traceparent`: of the launch, if it is traced. `user`: absent for one that nobody asked for. */
export function specOf(
  { rspec, image, initscript, nesting, devices, caches, authorizedKeys }: SliverSettings,
  { name, generation }: Pick<SliverSpecInput, "name" | "generation">,
  tags: SliverSpecInput["tags"],
  traceparent: string | undefined,
  user: CacheUser | undefined,
): SliverSpecInput {
  const volumes = volumesOf(caches, user);
  return {
    name,
    generation,
    instantiation: "plc-instantiated",
    keys: [...authorizedKeys],
    ...(image === null ? {} : { image }),
    initscript,
    // Managers that are older than these fields refuse them, so they are sent only when needed.
    ...(nesting ? { nesting } : {}),
    ...(devices.length > 0 ? { devices: [...devices] } : {}),
    ...(caches.folders.length > 0 ? { caches: [...caches.folders] } : {}),
    ...(volumes.length > 0 ? { volumes } : {}),
    rspec: { ...rspec },
    tags: {
      ...tags,
      ...cacheTags(caches, user),
      ...(traceparent === undefined ? {} : { [TRACE_TAG]: traceparent }),
    },
  };
}

/** Normalizes keys to `type base64`; other lines are errors. */
export function readKeys(lines: readonly string[], at: Reader): readonly string[] {
  return lines.flatMap((line, index) => {
    try {
      return [sshKey(line)];
    } catch (error) {
      at.error("authorized-keys", `entry ${index}: ${messageOf(error)}`);
      return [];
    }
  });
}

/** The key `lend`: whether idle slivers lend their caps. */
export function readLend(lend: "none" | "idle", rspec: Amounts, at: Reader): boolean {
  if (lend === "idle" && LENT.every((name) => (rspec[name] ?? 0) === 0))
    at.useless(
      "lend",
      "is without effect: caps are lent, and there are none; add cpu-cap, net-cap or io-read",
    );
  return lend === "idle";
}
