import {
  abortable,
  add,
  type Clock,
  DriverError,
  deadline,
  messageOf,
  type SliverMachine,
  tagOf,
} from "@nodeyard/driver";
import type { NodeReport, Rspec, SliverReport } from "@nodeyard/sliver-protocol";
import { capacityOf, guaranteesOf } from "./amounts.ts";
import { FREE, isIdle } from "./lending/index.ts";
import type { SliverHost } from "./sliver-host.ts";

/** Time limit for the answer of one machine, milliseconds. A person waits, and other machines are shown without it. */
const ANSWER_MS = 3_000;
/** Usage is in bytes, limits are in KiB; both are shown in MiB. */
const MIB = 1_048_576;
/** Part of a disk limit from which on it explains why a job fails: btrfs keeps the last blocks for itself. */
const NEARLY_FULL = 0.95;

/**
 * The resources and loans of a machine, from its manager's present report, for operators. A machine that does not answer is shown with
 * the error. Rejects only with the reason of `signal`.
 */
export async function machineOf(
  host: SliverHost,
  installation: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<SliverMachine> {
  const late = () => new DriverError("timeout", `machine ${host.name} did not answer within ${ANSWER_MS} ms`);
  using limit = deadline(clock, ANSWER_MS, late, signal);
  try {
    const report = await abortable(host.status(limit.signal), limit.signal);
    return shown(report, installation, host.taken(report)?.message);
  } catch (error) {
    signal.throwIfAborted();
    const unknown = { capacity: {}, guaranteed: {}, remarks: [], caches: [], slivers: [] };
    return { name: host.name, error: messageOf(error), ...unknown };
  }
}

/** The free part of the machine is no sliver, so it counts for nothing. */
function shown(report: NodeReport, installation: string, leftAlone: string | undefined): SliverMachine {
  const made = report.slivers.filter(({ name }) => name !== FREE);
  return {
    name: report.node,
    error: leftAlone ?? report.trouble?.message ?? null,
    capacity: capacityOf(report),
    guaranteed: made.reduce<SliverMachine["guaranteed"]>((sum, one) => add(sum, guaranteesOf(one)), {}),
    remarks: [...faultsOf(report), ...updatesOf(report)],
    faults: { counting: report.counting === true, waitingThreads: report.waitingThreads ?? 0 },
    caches: report.caches ?? [],
    slivers: report.slivers.map((sliver) => sliverOf(sliver, installation)),
  };
}

/** Slivers of other installations are shown too, without a node. */
function sliverOf(sliver: SliverReport, installation: string): SliverMachine["slivers"][number] {
  const { name, phase, doing, error, rspec, effective, loans, tags } = sliver;
  const tag = tagOf(tags);
  const use = name === FREE ? "free" : isIdle({ tags }) ? "idle" : "busy";
  return {
    name,
    node: tag?.installation === installation ? tag.nodeId : null,
    use,
    phase,
    doing: doing ?? null,
    error: error?.message ?? null,
    remarks: remarksOf(sliver),
    usage: {
      ...sliver.usage,
      ...(sliver.memoryKills === undefined ? {} : { memoryKills: sliver.memoryKills }),
    },
    guarantees: use === "free" ? {} : guaranteesOf(sliver),
    rspec: given(rspec),
    effective: given(effective),
    loans: loans.map(({ to, resource, amount, honoured, refusal }) => ({
      to,
      resource,
      amount,
      refused: honoured ? null : (refusal ?? "absent"),
    })),
  };
}

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

/** The amounts that are not zero; most are zero. */
function given(amounts: Rspec): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount > 0));
}
