import { roundAmount } from "@nodeyard/model";
import { compareText } from "@nodeyard/runtime";
import type { JournalEventName, PastEvent } from "@nodeyard/telemetry";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** What a cost may be listed by. */
export const costKeys = ["request", "client", "tenant", "label", "provider"] as const;
/** A key of costKeys. */
export type CostKey = (typeof costKeys)[number];

/** One line of a list of costs. */
export interface CostRow {
  /** A value of the key of the list; null: nobody, that is nodes that were ready for users who did not come. */
  readonly of: string | null;
  /** Code of ISO 4217; null: nobody said what these nodes cost, and only hours are known. */
  readonly currency: string | null;
  /** Of nodes, from the record's creation until the machine was gone, the part of spare nodes included. */
  readonly hours: number;
  /** The part of `hours` in which a node was made for others or ready for anybody. */
  readonly shared_hours: number;
  /** Null without a currency. */
  readonly cost: number | null;
}

interface Asked {
  readonly tenant: string | null;
  readonly client: string | null;
}

interface Price {
  readonly per_hour: number;
  readonly currency: string;
  readonly part_of?: readonly string[];
}

interface Node {
  readonly id: string;
  readonly provider: string;
  readonly label: string;
  price: Price | null;
  /** Times of which somebody has to bear the cost: the request, or undefined for nobody in particular. */
  readonly spans: { readonly from: number; readonly request: string | undefined }[];
  end: number | undefined;
  /** Time of its newest event. */
  last: number;
}

/** A part of a node's time within one day. */
interface Piece {
  readonly day: number;
  readonly node: Node;
  readonly request: string | undefined;
  readonly hours: number;
}

/** An amount before and after it is shared out. */
interface Share {
  readonly of: string | null;
  readonly currency: string | null;
  hours: number;
  shared: number;
  cost: number;
}

/**
 * Who bears the cost of nodes, by a journal. A node costs from the creation of its record until its machine is gone. A request bears all time
 * of the nodes that were made for it, of launches that failed, too, and of those that it took over from then on. What is left, the time of
 * nodes that were kept ready, is borne by those who used the label on the same day (UTC), each in proportion to the hours that it used. Slots bear their parts of backing nodes.
 */
export class CostBook {
  static readonly events: readonly JournalEventName[] = [
    "request.accepted",
    "request.declined",
    "node.created",
    "node.ready",
    "node.claimed",
    "node.checked",
    "node.returned",
    "node.held",
    "node.deleting",
    "node.vanished",
    "node.dead",
    "node.deleted",
  ];
  readonly #asked = new Map<string, Asked>();
  readonly #nodes = new Map<string, Node>();
  /** By provider and label: of a launch that failed nobody noted a price. */
  readonly #prices = new Map<string, Price>();

  /** Takes an event of a journal, in the order of writing. */
  event({ at, event, request, node: id, facts }: PastEvent): void {
    if (request !== null && isObject(facts.asked)) {
      const { tenant, client } = facts.asked;
      this.#asked.set(request, { tenant: textOf(tenant), client: textOf(client) });
    }
    if (id === null) return;
    if (event === "node.created") {
      const [provider, label] = [String(facts.provider), String(facts.label)];
      const spans = [{ from: at, request: textOf(facts.request) ?? undefined }];
      this.#nodes.set(id, { id, provider, label, price: null, spans, end: undefined, last: at });
    }
    const node = this.#nodes.get(id);
    if (node === undefined) return;
    node.last = at;
    if (event === "node.ready" && isObject(facts.cost)) {
      node.price = facts.cost as unknown as Price;
      this.#prices.set(JSON.stringify([node.provider, node.label]), node.price);
    }
    if (event === "node.claimed") node.spans.push({ from: at, request: textOf(facts.request) ?? undefined });
    // From its check on it is nobody's, until somebody takes it again.
    if (event === "node.checked") node.spans.push({ from: at, request: undefined });
    if (event === "node.deleted") node.end = at;
  }

  /**
   * Ends nodes that are gone though no event says so, each with its newest event: the launcher that deleted a node is the one that notes it.
   * `present`: ids in the tree, read after the journal. Returns how many these were.
   */
  endGone(present: ReadonlySet<string>): number {
    const gone = [...this.#nodes.values()].filter(({ id, end }) => end === undefined && !present.has(id));
    for (const node of gone) node.end = node.last;
    return gone.length;
  }

  /** Between two times, milliseconds; nodes that are still there cost until `to`. The dearest first. */
  rows(by: CostKey, since: number, to: number): readonly CostRow[] {
    const pieces = [...this.#nodes.values()].flatMap((node) => this.#piecesOf(node, since, to));
    const used = new Map<string, Piece[]>();
    for (const piece of pieces)
      if (piece.request !== undefined) push(used, potOf(piece.day, piece.node.label), piece);
    const sums = new Map<string, Share>();
    for (const piece of pieces) {
      const users = piece.request === undefined ? used.get(potOf(piece.day, piece.node.label)) : [piece];
      this.#add(sums, by, piece, users ?? []);
    }
    return [...sums.values()]
      .map(({ of, currency, hours, shared, cost }) => ({
        ...{ of, currency, hours: roundAmount(hours), shared_hours: roundAmount(shared) },
        cost: currency === null ? null : roundAmount(cost),
      }))
      .sort(
        (a, b) => (b.cost ?? 0) - (a.cost ?? 0) || b.hours - a.hours || compareText(a.of ?? "", b.of ?? ""),
      );
  }

  /** Adds a piece to its users in proportion to what they used; to nobody where there are none. */
  #add(sums: Map<string, Share>, by: CostKey, piece: Piece, users: readonly Piece[]): void {
    const price =
      piece.node.price ?? this.#prices.get(JSON.stringify([piece.node.provider, piece.node.label]));
    const currency = price?.currency ?? null;
    const all = users.reduce((sum, { hours }) => sum + hours, 0);
    const amount = (hours: number) => hours * (price?.per_hour ?? 0);
    const sumOf = (of: string | null) => {
      const key = JSON.stringify([of, currency]);
      const sum = sums.get(key) ?? { of, currency, hours: 0, shared: 0, cost: 0 };
      sums.set(key, sum);
      return sum;
    };
    // A slot's price is a part of that of its backing node, which is paid once: by the provider of the machine.
    const backing = price?.part_of?.[0];
    if (backing !== undefined && by !== "provider")
      sumOf(by === "label" ? backing : null).cost -= amount(piece.hours);
    const parts =
      all > 0 ? users.map((user) => ({ user, part: user.hours / all })) : [{ user: piece, part: 1 }];
    for (const { user, part } of parts) {
      // A provider and a label have the cost of their own nodes, whoever bears it.
      const of =
        by === "provider" ? piece.node.provider : by === "label" ? piece.node.label : this.#whose(by, user);
      const sum = sumOf(of);
      sum.hours += part * piece.hours;
      if (piece.request === undefined) sum.shared += part * piece.hours;
      if (backing === undefined || by !== "provider") sum.cost += amount(part * piece.hours);
    }
  }

  #whose(by: "request" | "client" | "tenant", { request }: Piece): string | null {
    if (request === undefined || by === "request") return request ?? null;
    return this.#asked.get(request)?.[by] ?? null;
  }

  /** A node's time, cut where its bearer changes and at midnight. */
  #piecesOf(node: Node, since: number, to: number): Piece[] {
    return node.spans.flatMap(({ from, request }, index) => {
      const end = Math.min(node.spans[index + 1]?.from ?? node.end ?? to, to);
      // Requests of launchers themselves, which keep nodes ready, have asked for nothing.
      const bearer = request !== undefined && this.#asked.has(request) ? request : undefined;
      const pieces: Piece[] = [];
      for (let at = Math.max(from, since); at < end; ) {
        const day = Math.floor(at / DAY_MS);
        const until = Math.min(end, (day + 1) * DAY_MS);
        pieces.push({ day, node, request: bearer, hours: (until - at) / HOUR_MS });
        at = until;
      }
      return pieces;
    });
  }
}

function potOf(day: number, label: string): string {
  return `${day} ${label}`;
}

function push<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
