import type { NodeRecord, RequestRecord } from "@nodeyard/model";
import { defined, type Span, spanId, traceparentOf } from "@nodeyard/runtime";
import type { Journal, JournalEvent } from "@nodeyard/telemetry";
import type { View } from "@nodeyard/view";

/** Requests and nodes that are traced at once, at most; of more, the oldest are not. */
const MOST = 10_000;

/** A request that a pool has taken. Times are tree time, milliseconds. */
interface Traced {
  /** 32 hex digits, the id of a W3C trace (https://www.w3.org/TR/trace-context/). */
  readonly trace: string;
  /** 16 hex digits, the id of the request's own span, which is the parent of all others. */
  readonly span: string;
  readonly created: number;
  readonly attributes: Span["attributes"];
}

/** A node that is launched for it. */
interface Launched {
  readonly request: Traced;
  readonly span: string;
  /** When its record was made, tree time. */
  readonly began: number;
}

/** Of the journal's `node.step`. */
interface StepFacts {
  readonly of: string;
  readonly attempt: number;
  readonly step: string;
  readonly began: number;
  readonly ms: number;
  readonly error?: string;
}

/**
 * A journal whose events of one request also make a trace: a span of the request, from its creation to its end, in it the wait for a pool
 * and the launch of each node, and in that the driver's steps. The ids are made of the request's id and age, so that all launchers that
 * work on a request make spans of one trace.
 */
export class TracedJournal implements Journal {
  readonly #journal: Journal;
  readonly #requests: View["requests"];
  readonly #now: () => number;
  readonly #emit: (span: Span) => void;
  /** Requests between acceptance and their end. A request that another launcher accepted is not here, and its events make no spans. */
  readonly #taken = new Map<string, Traced>();
  /** By node id, between the creation of the record and the end of the launch. */
  readonly #launches = new Map<string, Launched>();

  /** `now`: tree time, milliseconds. */
  constructor(
    journal: Journal,
    { requests }: Pick<View, "requests">,
    now: () => number,
    emit: (span: Span) => void,
  ) {
    this.#journal = journal;
    this.#requests = requests;
    this.#now = now;
    this.#emit = emit;
  }

  write(written: JournalEvent): void {
    this.#journal.write(written);
    const { event, request, node, facts, record } = written;
    if (event === "request.accepted") this.#accept(request!, facts);
    else if (event === "request.fulfilled") this.#end(request!);
    else if (event === "request.lost" || (event === "request.declined" && facts.state === "failed"))
      this.#end(request!, String(facts.reason ?? facts.error));
    else if (event === "node.created") this.#beginLaunch(node!, String(facts.request));
    else if (event === "node.step") this.#step(node!, facts as unknown as StepFacts);
    else if (event === "node.ready") this.#endLaunch(node!, record);
    else if (event === "node.failed" || event === "node.given-up")
      this.#endLaunch(node!, record, String(facts.why ?? facts.error));
  }

  /** Called again after the request was put back: the second wait is a span of its own, and the request's span is the same. */
  #accept(id: string, facts: JournalEvent["facts"]): void {
    const record = this.#requests.byId.get(id)?.record;
    const accepted = this.#now();
    const created = record?.createdTime == null ? accepted : createdAt(record.createdTime);
    const trace = traceOf(id, created);
    const { provider, pool, labels, nodes } = facts as { readonly [key: string]: string };
    const attributes = { request: id, provider, pool, labels: String(labels), nodes: Number(nodes) };
    const asked = { ...attributes, requestor: record?.requestor ?? "", event_id: record?.eventId ?? "" };
    const span = spanId(16, id, created);
    keep(this.#taken, id, { trace, span, created, attributes: asked });
    const wait = { trace, id: spanId(16, id, "waits", accepted), parent: span };
    this.#emit({ ...wait, name: "wait for a pool", start: created, end: accepted, attributes });
  }

  #end(id: string, error?: string): void {
    const one = this.#taken.get(id);
    if (one === undefined) return;
    this.#taken.delete(id);
    const { trace, span, created: start, attributes } = one;
    const times = { start, end: this.#now() };
    this.#emit({ trace, id: span, name: "request", ...times, attributes, ...defined({ error }) });
  }

  /** A node of a request that another launcher accepted has no trace here. */
  #beginLaunch(node: string, request: string): void {
    const of = this.#taken.get(request);
    if (of === undefined) return;
    keep(this.#launches, node, { request: of, span: launchSpan(node, of.trace), began: this.#now() });
  }

  /** Steps of deletions and of launches that another process made have no launch here, and are left out. */
  #step(node: string, { of, attempt, step, began: start, ms, error }: StepFacts): void {
    const launch = this.#launches.get(node);
    if (launch === undefined) return;
    this.#emit({
      trace: launch.request.trace,
      id: spanId(16, node, of, attempt, step, start),
      parent: launch.span,
      name: `${of}: ${step}`,
      start,
      end: start + ms,
      attributes: { node, attempt },
      ...defined({ error }),
    });
  }

  #endLaunch(node: string, record: NodeRecord | undefined, error?: string): void {
    const launch = this.#launches.get(node);
    if (launch === undefined) return;
    this.#launches.delete(node);
    const { provider, pool, type, externalId = null } = record ?? {};
    this.#emit({
      trace: launch.request.trace,
      id: launch.span,
      parent: launch.request.span,
      name: `launch ${type?.join(",") ?? "a node"}`,
      start: launch.began,
      end: this.#now(),
      attributes: {
        node,
        provider: provider ?? "",
        pool: pool ?? "",
        server_id: JSON.stringify(externalId),
      },
      ...defined({ error }),
    });
  }
}

/** A Map keeps the order of insertion, so the first keys are the oldest. Requests that never end here would fill it otherwise. */
function keep<T>(all: Map<string, T>, id: string, one: T): void {
  all.set(id, one);
  for (const oldest of all.keys()) {
    if (all.size <= MOST) return;
    all.delete(oldest);
  }
}

/** The launch of a node as other processes that work on it continue its trace; undefined for a request that does not say how old it is. */
export function traceparentFor(
  { id, record }: { readonly id: string; readonly record: Pick<RequestRecord, "createdTime"> },
  node: string,
): string | undefined {
  if (record.createdTime == null) return undefined;
  const trace = traceOf(id, createdAt(record.createdTime));
  return traceparentOf({ trace, span: launchSpan(node, trace) });
}

/** The same in every process: it depends on nothing but the id and the age of the request. */
function traceOf(request: string, created: number): string {
  return spanId(32, request, created);
}

/** Also what a sliver manager gets as the parent of its own spans, so it must not depend on this process either. */
function launchSpan(node: string, trace: string): string {
  return spanId(16, node, trace);
}

/** Requests store seconds with fractions; spans have whole milliseconds. */
function createdAt(seconds: number): number {
  return Math.round(seconds * 1000);
}
