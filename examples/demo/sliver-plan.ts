import type { KeySet } from "@nodeyard/sliver-protocol";

/** The facts of this machine that its slivers are planned by. */
export interface SliverFacts {
  /** Processors. */
  readonly cores: number;
  /** KiB. */
  readonly memory: number;
  /** An archive that roots can be made from; undefined: slivers see the host's programs. */
  readonly image: string | undefined;
  /** The program of the sliver manager. */
  readonly sliverd: string;
}

/** One folder per machine: each start finds here what an earlier start left. */
export const PLACES = {
  folder: "/var/lib/nodeyard-demo",
  run: "/run/nodeyard-demo",
  config: "/var/lib/nodeyard-demo/sliverd.json",
  keys: "/var/lib/nodeyard-demo/keys.json",
  log: "/var/lib/nodeyard-demo/sliverd.log",
  socket: "/run/nodeyard-demo/control/api.sock",
} as const;

/** Archives of images that a sliver manager with this folder as its `cache` made before. */
export const IMAGE_CACHE = "/var/cache/nodeyard-images";
export const NODE = "this-machine";
/** First two numbers of the slivers' addresses. */
const NETWORK = "10.214";
const MIB = 1024 * 1024;
/** Bytes, allocated at once. A container's image has to fit. */
const POOL = { account: 640 * MIB, container: 3072 * MIB };
const HIGHEST_INDEX = 16;

export function backEndOf({ image }: Pick<SliverFacts, "image">): "account" | "container" {
  return image === undefined ? "account" : "container";
}

/** Bytes of disk that have to be free. */
export function diskNeeded(facts: Pick<SliverFacts, "image">): number {
  return POOL[backEndOf(facts)] + 512 * MIB;
}

/** The configuration of `sliverd`. A quarter of the machine stays the host's. */
export function sliverdConfig(facts: SliverFacts, keySet: KeySet): object {
  const { cores, memory, image } = facts;
  const backEnd = backEndOf(facts);
  return {
    node: NODE,
    backEnd,
    stateFolder: `${PLACES.folder}/state`,
    runFolder: PLACES.run,
    keySet,
    capacity: {
      cpu: Math.floor(cores * 750),
      memory: Math.floor(memory * 0.75),
      disk: Math.floor((POOL[backEnd] / 1024) * 0.75),
    },
    machine: { cpu: cores * 1000, highestIndex: HIGHEST_INDEX },
    startSpacingSeconds: 0,
    isolation: {
      folder: PLACES.folder,
      network: NETWORK,
      pool: { bytes: POOL[backEnd] },
      ...(image === undefined ? {} : { images: { cached: { tar: image } }, defaultImage: "cached" }),
    },
  };
}

/** What exists from the start to the end and not afterwards, one line each. */
export function changes(facts: SliverFacts): readonly string[] {
  const size = Math.round(POOL[backEndOf(facts)] / MIB);
  return [
    `${PLACES.folder}: files, and a btrfs of ${size} MiB in one of them, mounted there`,
    `${PLACES.run}: sockets of the sliver manager`,
    "control groups nodeyard-slivers, network interfaces ny-*, one nftables table named nodeyard*",
    `addresses ${NETWORK}.0.0/16 of the slivers, which reach neither the world nor this host's listeners`,
  ];
}
