import {
  abortable,
  add,
  type Clock,
  DriverError,
  deadline,
  defined,
  messageOf,
  type SliverMachine,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import type { NodeReport, Rspec, SliverReport } from "@nodeyard/sliver-protocol";
import { capacityOf, guaranteesOf } from "./amounts.ts";
import { FREE, isIdle } from "./lending/index.ts";
import { nodeNamed } from "./names.ts";
import { endedOf, faultsOf, remarksOf, updatesOf } from "./remarks.ts";

/** Time limit for the answer of one machine, milliseconds. A person waits, and other machines are shown without it. */
const ANSWER_MS = 3_000;
/** Usage is in bytes. */
const MIB = 1_048_576;

/** From where a machine is looked at. */
interface ShownFor {
  /** Slivers of other installations are shown without a node. Absent: the machine's own operator looks, who sees the nodes of all. */
  readonly owner?: Pick<Tag, "installation" | "provider">;
  /** Why nothing is done to the machine. */
  readonly leftAlone?: string | undefined;
}

/**
 * A machine as REST, the page and the command line show it, from its manager's report; everything that they show of it is computed here. The
 * free part of the machine is no sliver, so it counts for nothing.
 */
export function shownMachine(report: NodeReport, { owner, leftAlone }: ShownFor = {}): SliverMachine {
  const made = report.slivers.filter(({ name }) => name !== FREE);
  const sum = (amounts: (one: SliverReport) => Amounts) =>
    made.reduce<Amounts>((all, one) => add(all, amounts(one)), {});
  return {
    name: report.node,
    error: leftAlone ?? report.trouble?.message ?? null,
    capacity: capacityOf(report),
    guaranteed: sum(guaranteesOf),
    uses: sum(usesOf),
    remarks: [...faultsOf(report), ...updatesOf(report), ...endedOf(report, owner)],
    faults: { counting: report.counting === true, waitingThreads: report.waitingThreads ?? 0 },
    caches: (report.caches ?? []).map((cache) => ({ ...cache, node: nodeNamed(cache.by, owner) })),
    spares: (report.spares ?? []).map(({ phase, image, nesting }) => ({
      ...{ phase, image: image ?? null, nesting: nesting === true },
    })),
    slivers: report.slivers.map((sliver) => sliverOf(sliver, owner?.installation)),
  };
}

type Amounts = SliverMachine["guaranteed"];

/** What `look` finds; a machine that does not answer in time is shown with the error. Rejects only with the reason of `signal`. */
export async function machineOf(
  name: string,
  clock: Clock,
  signal: AbortSignal,
  look: (within: AbortSignal) => Promise<SliverMachine>,
): Promise<SliverMachine> {
  const late = () => new DriverError("timeout", `machine ${name} did not answer within ${ANSWER_MS} ms`);
  using limit = deadline(clock, ANSWER_MS, late, signal);
  try {
    return await abortable(look(limit.signal), limit.signal);
  } catch (error) {
    signal.throwIfAborted();
    const amounts = { capacity: {}, guaranteed: {}, uses: {} };
    return { name, error: messageOf(error), ...amounts, remarks: [], caches: [], spares: [], slivers: [] };
  }
}

function sliverOf(sliver: SliverReport, installation: string | undefined): SliverMachine["slivers"][number] {
  const { name, phase, doing, held, settled, error, rspec, effective, loans, tags } = sliver;
  const use = name === FREE ? "free" : isIdle({ tags }) ? "idle" : "busy";
  return {
    name,
    node: nodeOf(tags, installation),
    use,
    phase,
    doing: doing ?? null,
    held: held === true,
    settled: settled ?? null,
    error: error?.message ?? null,
    remarks: remarksOf(sliver),
    usage: {
      ...sliver.usage,
      ...(sliver.memoryKills === undefined ? {} : { memoryKills: sliver.memoryKills }),
    },
    guarantees: use === "free" ? {} : guaranteesOf(sliver),
    caps: capsOf(sliver, effective),
    borrowed: borrowedOf(sliver),
    uses: usesOf(sliver),
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

/** Slivers of slots have tags of their own; slivers of pools have the tag of a machine. */
function nodeOf(tags: SliverReport["tags"], installation: string | undefined): string | null {
  const { nodeId = null, installation: made } = tagOf(tags) ?? {
    ...{ nodeId: tags.node, installation: tags.installation },
  };
  return installation === undefined || made === installation ? nodeId : null;
}

/** The most that a sliver with this rspec may use, named as what it is guaranteed. Without a cap of its own a name is absent. */
function capsOf(sliver: SliverReport, rspec: Rspec): Amounts {
  const { "disk-mib": disk = 0 } = guaranteesOf({ ...sliver, rspec });
  const caps = { millicores: rspec.cpuCap, ram: Math.ceil(rspec.memoryCap / 1024), "disk-mib": disk };
  return Object.fromEntries(Object.entries(caps).filter(([, cap]) => cap > 0));
}

/** What loans add to its caps, or take from them. */
function borrowedOf(sliver: SliverReport): Amounts {
  const own = capsOf(sliver, sliver.rspec);
  const now = capsOf(sliver, sliver.effective);
  const names = Object.keys({ ...own, ...now });
  const loans = names.map((name) => [name, (now[name] ?? 0) - (own[name] ?? 0)] as const);
  return Object.fromEntries(loans.filter(([, amount]) => amount !== 0));
}

/** What it uses now, as far as its machine measures it. */
function usesOf({ usage: { cpuNow, memory, disk } = {} }: SliverReport): Amounts {
  const mib = (bytes: number | undefined) => bytes && Math.ceil(bytes / MIB);
  return defined({ millicores: cpuNow, ram: mib(memory), "disk-mib": mib(disk) });
}

/** The amounts that are not zero; most are zero. */
function given(amounts: Rspec): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount > 0));
}
