import type { NodeReport, SliverReport } from "@nodeyard/sliver-protocol";
import { nodeNamed } from "./names.ts";

/** Usage is in bytes, limits are in KiB; both are shown in MiB. */
const MIB = 1_048_576;
/** Part of a disk limit from which on it explains why a job fails: btrfs keeps the last blocks for itself. */
const NEARLY_FULL = 0.95;
/** Slivers that ended and had been killed for memory, of which a machine says so. */
const MOST_ENDED = 5;

/** Facts that explain how jobs in the sliver fared; empty when there are none. */
export function remarksOf({
  held,
  memoryKills = 0,
  effective,
  throttled,
  triedVersion,
  usage,
  volumes = [],
}: Pick<
  SliverReport,
  "held" | "memoryKills" | "effective" | "throttled" | "triedVersion" | "usage" | "volumes"
>): readonly string[] {
  const disk = (usage?.disk ?? 0) / MIB;
  const limit = effective.disk / 1024;
  return [
    ...(held === true ? ["its document holds it: it is suspended until it is no longer held"] : []),
    ...(memoryKills === 0 ? [] : [killsText(memoryKills, effective.memoryCap)]),
    ...(throttled === undefined ? [] : [throttled]),
    ...(triedVersion === undefined
      ? []
      : [`it was made of a version of its image that was on trial (${versionText(triedVersion)})`]),
    ...volumes.flatMap(({ name, from, why }) =>
      from === undefined && why === undefined
        ? []
        : [
            from === undefined
              ? `its cache ${name} began empty: ${why}`
              : `its cache ${name} began with ${Math.ceil(from / MIB)} MiB`,
          ],
    ),
    ...(limit > 0 && disk > NEARLY_FULL * limit
      ? [`its disk (${Math.floor(limit)} MiB) is nearly full: it uses ${Math.floor(disk)} MiB`]
      : []),
  ];
}

/** Faults of a machine, one line each. */
export function faultsOf({
  counting,
  waitingThreads = 0,
}: Pick<NodeReport, "counting" | "waitingThreads">): readonly string[] {
  return [
    ...(counting === true
      ? ["its disk limits do not hold until btrfs has counted again, and it makes no sliver meanwhile"]
      : []),
    ...(waitingThreads === 0
      ? []
      : [
          `${waitingThreads} operations of its sliverd on files have waited for half a minute: send it SIGUSR2, and see dmesg`,
        ]),
  ];
}

/** The last slivers that ended after some of their processes had been killed for memory. */
export function endedOf(
  { killed = [] }: Pick<NodeReport, "killed">,
  owner: Parameters<typeof nodeNamed>[1],
): readonly string[] {
  return killed.slice(-MOST_ENDED).map(({ name, memoryKills, memoryCap }) => {
    const node = nodeNamed(name, owner);
    const what = node === null ? `sliver ${name}` : `node ${node}`;
    return `${what} has ended; ${killsText(memoryKills, memoryCap)}`;
  });
}

/** Updates of a machine's images that are tried, or how the last ones ended; one line each. */
export function updatesOf({ images = [] }: Pick<NodeReport, "images">): readonly string[] {
  return images.map(({ image, version, verdict, why }) => {
    const now = verdict === "on-trial" ? "is on trial" : `was ${verdict.replace("-", " ")}`;
    return `a new version of image ${image} (${versionText(version)}) ${now}: ${why}`;
  });
}

/** Twelve digits, as container tools show digests. */
function versionText(version: string): string {
  return `sha256:${version.slice(0, 12)}`;
}

/** `cap` in KiB; 0: only the common limit of all slivers applies. */
export function killsText(kills: number, cap: number): string {
  const whose = cap === 0 ? "the memory of all slivers" : `its memory (${Math.floor(cap / 1024)} MiB)`;
  return `${whose} was full: the kernel killed ${kills} ${kills === 1 ? "process" : "processes"}`;
}
