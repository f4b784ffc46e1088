import { errorClass, issueText, messageOf } from "@nodeyard/runtime";
import type { JournalEventName, PastEvent } from "@nodeyard/telemetry";
import { z } from "zod";

/** A file of demand cannot be used. The message names file and line. */
export class DemandError extends errorClass("plan.demand") {}

const seconds = z.number().nonnegative();
const amounts = z.record(z.string(), z.number().nonnegative());
/** Seconds since the epoch, or a text with a date and a time. */
const instant = z.union([
  z.number(),
  z.iso.datetime({ offset: true }).transform((text) => Date.parse(text) / 1000),
]);

const requestSchema = z.strictObject({
  /** The id of the request, whose part before the dash is its priority. Absent: priority 100. */
  request: z
    .string()
    .regex(/^\d+-\d+$/)
    .optional(),
  at: instant,
  labels: z.array(z.string()).min(1),
  tenant: z.string().optional(),
  /** Counts for its share. */
  client: z.string().optional(),
  relative_priority: z.number().optional(),
  /** Ids of the nodes it got. */
  nodes: z.array(z.string()).optional(),
  /** How long its nodes are used; absent: as long as `nodes` were, else as long as another of the label. */
  used: seconds.optional(),
});
/** A line of the file that says what one node took; what is absent was not recorded. */
const nodeSchema = z.strictObject({
  node: z.string(),
  provider: z.string().optional(),
  pool: z.string().optional(),
  label: z.string().optional(),
  /** From the begin of its launch until it was ready. */
  launched: seconds.optional(),
  used: seconds.optional(),
  /** From the begin of its deletion until machine and record were gone. */
  deleted: seconds.optional(),
  resources: amounts.optional(),
  /** What an hour of it costs. */
  cost: z.object({ per_hour: z.number().nonnegative(), currency: z.string() }).optional(),
});
/** A line of the file that says what a provider's cloud allows. */
const quotaSchema = z.strictObject({ provider: z.string(), quota: amounts });

/** A request of the past. Times are seconds, as in the file (docs/how-to/plan-a-change.md). */
export type DemandedRequest = z.infer<typeof requestSchema> & { readonly request: string };
/** A recorded node. */
export type PastNode = z.infer<typeof nodeSchema>;

/** Recorded requests, and durations of launches, uses and deletions. */
export interface Demand {
  /** The oldest first. */
  readonly requests: readonly DemandedRequest[];
  readonly nodes: readonly PastNode[];
  /** By provider: what its cloud allows. */
  readonly quotas: ReadonlyMap<string, Readonly<Record<string, number>>>;
}

/** Demand as it is put together from journals and files of several launchers: each request and each node once. */
export class DemandBook {
  /** What a journal is read for. No others are looked at, so a journal of a busy installation is read by these alone. */
  static readonly events: readonly JournalEventName[] = [
    "request.accepted",
    "request.declined",
    "request.fulfilled",
    "node.ready",
    "node.returned",
    "node.deleting",
    "node.deleted",
  ];
  /** By id and time, because a new tree counts its requests from 0 again. */
  readonly #requests = new Map<string, DemandedRequest>();
  /** By node id. */
  readonly #nodes = new Map<string, PastNode>();
  readonly #quotas = new Map<string, Readonly<Record<string, number>>>();
  /** Of the journal that is read: the request that has an id now, and when the deletion of a node began. */
  readonly #latest = new Map<string, DemandedRequest>();
  /** Requests of files without an id so far; each gets one of its own. */
  #unnamed = 0;
  /** By node id, wall milliseconds. */
  readonly #deleting = new Map<string, number>();

  /** Takes an event of a journal, in the order of writing. */
  event({ at, event, request, node, facts }: PastEvent): void {
    if (request !== null) this.#requestEvent(at, request, event, facts);
    if (node === null) return;
    const { ms, provider, pool, label, resources, cost } = facts;
    const known = { resources: resources ?? undefined, cost: cost ?? undefined };
    if (event === "node.ready")
      this.#note(node, { provider, pool, label, launched: inSeconds(ms), ...known });
    else if (event === "node.returned") this.#note(node, { used: inSeconds(ms) });
    else if (event === "node.deleting") this.#deleting.set(node, at);
    else if (event === "node.deleted")
      this.#note(node, { deleted: inSeconds(at - (this.#deleting.get(node) ?? Number.NaN)) });
  }

  /** Takes a file. Throws DemandError with the line that makes no sense. */
  read(file: string, text: string): void {
    for (const [index, line] of text.split("\n").entries()) {
      if (line.trim() === "") continue;
      let given: unknown;
      try {
        given = JSON.parse(line);
        this.#take(given as object);
      } catch (error) {
        const why = error instanceof z.ZodError ? issueText(error.issues[0]!, given) : messageOf(error);
        throw new DemandError(
          `${file}:${index + 1}: ${why}; a line is a request {"at": SECONDS, "labels": [LABEL]}, or what --record writes`,
        );
      }
    }
  }

  /** The requests from `since` on, seconds since the epoch. */
  demand(since = Number.NEGATIVE_INFINITY): Demand {
    const requests = [...this.#requests.values()].filter(({ at }) => at >= since);
    return {
      requests: requests.sort((a, b) => a.at - b.at || (a.request < b.request ? -1 : 1)),
      nodes: [...this.#nodes.values()],
      quotas: this.#quotas,
    };
  }

  /** What was asked for stands in the event of the acceptance or the refusal, the nodes in that of the fulfilment. */
  #requestEvent(at: number, id: string, event: string, facts: PastEvent["facts"]): void {
    if (event === "request.fulfilled") {
      const known = this.#latest.get(id);
      if (known !== undefined) this.#add({ ...known, nodes: facts.nodes as string[] });
      return;
    }
    const { asked } = facts as { readonly asked?: Record<string, unknown> };
    if (asked === undefined) return;
    const { created, ...of } = asked;
    const known = this.#latest.get(id);
    const parsed = requestSchema.safeParse({ ...of, request: id, at: created ?? known?.at ?? at / 1000 });
    // A later release may note more.
    if (parsed.success) this.#add({ ...known, ...parsed.data, request: id });
  }

  /** One line of a file. Throws ZodError. */
  #take(line: object): void {
    if ("labels" in line) {
      const given = requestSchema.parse(line);
      this.#add({ ...given, request: given.request ?? `100-${String(this.#unnamed++).padStart(10, "0")}` });
    } else if ("quota" in line) {
      const { provider, quota } = quotaSchema.parse(line);
      this.#quotas.set(provider, quota);
    } else this.#merge(nodeSchema.parse(line));
  }

  /** Several launchers may have noted one request; what one of them lacks comes from the other. */
  #add(request: DemandedRequest): void {
    this.#latest.set(request.request, request);
    const key = `${request.request} ${request.at}`;
    this.#requests.set(key, { ...this.#requests.get(key), ...request });
  }

  /** Takes the facts of an event. Facts of another form, as a later release may write them, are left out. */
  #note(node: string, facts: object): void {
    const parsed = nodeSchema.safeParse({ node, ...facts });
    if (parsed.success) this.#merge(parsed.data);
  }

  /** One launcher made the node, and another one may have seen how it was used. */
  #merge(node: PastNode): void {
    const known = Object.entries(node).filter(([, value]) => value !== undefined);
    this.#nodes.set(node.node, { ...this.#nodes.get(node.node), ...Object.fromEntries(known) } as PastNode);
  }
}

/** Undefined for what is no duration, such as NaN. */
function inSeconds(ms: unknown): number | undefined {
  return typeof ms === "number" && ms >= 0 ? ms / 1000 : undefined;
}
