import {
  amountText,
  BAR_RESOURCES,
  type Having,
  LAYERS,
  layersOf,
  resourceText,
  size,
  wholeOf,
} from "@nodeyard/client/amounts";
import type { shownMachine } from "@nodeyard/driver-sliver/shown";
import { ageOf, type Column, jsonOnly, plain, renderTable } from "@nodeyard/operations/listing";
import type { LeaseRow } from "../backend/backend.ts";
import { printRows } from "../listing.ts";
import type { Session } from "../session.ts";

type Machine = ReturnType<typeof shownMachine>;
type Sliver = Machine["slivers"][number];

const columns: readonly Column[] = [
  { heading: "Sliver", key: "sliver" },
  { heading: "Node", key: "node" },
  { heading: "Use", key: "use" },
  { heading: "Phase", key: "phase" },
  { heading: "Caps", key: "caps", show: (row) => capsText(row as unknown as SliverRow) },
  { heading: "Lends", key: "lends", show: (row) => lendsText(row as unknown as SliverRow) },
  { heading: "Trouble", key: "trouble" },
];

/** `sliverd status`: a row for each sliver and spare, and what is to be known of the machine. */
export function printSlivers({ io }: Session, machine: Machine, json: boolean): void {
  const spares = machine.spares.map(({ image, phase }): SliverRow => {
    const sliver = `spare of ${image ?? "the default image"}`;
    return { sliver, node: null, use: "spare", phase, settled: null, caps: {}, lends: [], trouble: null };
  });
  const rows = [...machine.slivers.map(sliverRow), ...spares].map((row) => ({ ...row }));
  printRows(io, rows, columns, { json, jsonAlso: jsonOnly("settled") });
  if (!json) for (const line of machine.remarks) io.out(`${plain(line)}\n`);
}

type SliverRow = ReturnType<typeof sliverRow>;

function sliverRow({ name, doing, phase, error, remarks, loans, ...one }: Sliver) {
  return {
    sliver: name,
    node: one.node,
    use: one.use as string,
    phase: doing ?? phase,
    settled: one.settled,
    /** Caps that policy lends: the sliver's own, and the one in force. */
    caps: Object.fromEntries(
      LENT.map((key) => [key, { own: one.rspec[key] ?? 0, inForce: one.effective[key] ?? 0 }]),
    ),
    lends: loans.map(({ refused, ...loan }) => ({ ...loan, refusal: refused })),
    trouble: error ?? (remarks.join("; ") || null),
  };
}

const LENT = ["cpuCap", "netCap", "ioRead"];

/** The caps in force, with the sliver's own value where it differs; of unchanged caps only the CPU's is shown. */
function capsText({ caps }: SliverRow): string {
  return Object.entries(caps)
    .filter(([name, { own, inForce }]) => own !== inForce || (name === "cpuCap" && own > 0))
    .map(([name, { own, inForce }]) => `${name} ${inForce}${inForce === own ? "" : ` of ${own}`}`)
    .join(", ");
}

function lendsText({ lends }: SliverRow): string {
  return lends
    .map(
      ({ to, resource, amount, refusal }) =>
        `${resource} ${amount} to ${to}${refusal === null ? "" : ` (not: ${refusal})`}`,
    )
    .join(", ");
}

/** Characters of a bar. */
const BAR = 30;

/** `sliverd status --wide`: what the page shows of a machine. `leases`: those that hold its nodes. */
export function printWide(session: Session, machine: Machine, leases: readonly LeaseRow[]): void {
  const { io } = session;
  const { name, capacity: caps, guaranteed: guarantees, uses, slivers, spares, caches } = machine;
  const whole: Having = { caps, guarantees, uses, borrowed: {} };
  const lines = BAR_RESOURCES.flatMap((resource) => [
    barLine([name, "", "", "machine"], whole, resource, wholeOf([whole], resource)),
    ...slivers.map((one) => {
      const state = `${one.use}, ${one.held ? "suspended" : (one.doing ?? one.phase)}`;
      return barLine(
        [one.name, one.node, holderText(leases, one.node), state],
        one,
        resource,
        wholeOf(slivers, resource),
      );
    }),
  ]);
  io.out(
    renderTable(
      ["Sliver", "Node", "For", "State", "Of", "Used", "Guaranteed", "At Most", "Loans", "Bar"],
      lines,
    ),
  );
  io.out(
    `${Object.values(LAYERS)
      .map(([sign, what]) => `${sign} ${what}`)
      .join(", ")}; a bar of a sliver ends at the most that one has\n`,
  );
  if (spares.length > 0)
    io.out(
      renderTable(
        ["Spare Of", "Phase"],
        spares.map(({ image, phase }) => [image ?? "the default image", phase]),
      ),
    );
  if (caches.length > 0) printCaches(session, caches, false);
  const { error, remarks } = machine;
  const own = slivers.flatMap((one) =>
    [...(one.error === null ? [] : [one.error]), ...one.remarks].map(
      (line) => `${one.node ?? one.name}: ${line}`,
    ),
  );
  for (const line of [...(error === null ? [] : [error]), ...remarks, ...own]) io.out(`${plain(line)}\n`);
}

/** Owner and job of the node's lease. */
function holderText(leases: readonly LeaseRow[], node: string | null): string {
  const lease = leases.find(({ nodes }) => node !== null && nodes.includes(node));
  const job = lease?.job == null ? [] : [`${lease.job.system} ${lease.job.id}`];
  return lease === undefined ? "" : [lease.owner, ...job].join(", ");
}

function barLine(
  begin: readonly unknown[],
  having: Having,
  resource: string,
  whole: number,
): readonly unknown[] {
  const { uses, guarantees, caps, borrowed } = having;
  const amounts = [uses, guarantees, caps, borrowed].map((all) =>
    (all[resource] ?? 0) === 0 ? "" : amountText(resource, all[resource]!),
  );
  const bar = Array.from({ length: BAR }, () => " ");
  for (const { kind, from, to } of layersOf(having, resource, whole))
    bar.fill(
      LAYERS[kind][0],
      Math.round(from * BAR),
      Math.max(Math.round(from * BAR) + 1, Math.round(to * BAR)),
    );
  return [...begin, resourceText(resource), ...amounts, bar.join("")];
}

type Cache = Omit<Machine["caches"][number], "node">;

const cacheColumns: readonly Column[] = [
  { heading: "Cache", key: "id" },
  { heading: "Name", key: "name" },
  { heading: "Key", key: "key", show: ({ key }) => plain((key as Cache["key"]).join("/")) },
  { heading: "Size", key: "bytes", show: ({ bytes }) => size(bytes as number) },
  { heading: "Hits", key: "hits" },
  { heading: "Age", key: "age", value: ageOf("began") },
  { heading: "Committed By", key: "by" },
  { heading: "Pinned", key: "pinned", show: ({ pinned }) => (pinned === true ? "yes" : "") },
];

/** The most recently used first. */
export function printCaches({ io, machine }: Session, caches: readonly Cache[], json: boolean): void {
  const rows = [...caches].sort((a, b) => b.used - a.used).map(cacheRow);
  const jsonAlso = jsonOnly("began", "committed", "used", "lost");
  printRows(io, rows, cacheColumns, { json, jsonAlso, now: machine.clock.now() });
}

/** With times in ISO 8601. */
export function cacheRow({ began, committed, used, ...cache }: Cache) {
  const iso = (seconds: number) => new Date(seconds * 1_000).toISOString();
  return { ...cache, began: iso(began), committed: iso(committed), used: iso(used) };
}
