import type { NodeRecord, RequestRecord } from "@nodeyard/model";
import { type Span, spanId, traceparentOf } from "@nodeyard/runtime";
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
  readonly accepted: number;
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
export function traceEvents(
  journal: Journal,
  { requests }: Pick<View, "requests">,
  now: () => number,
  emit: (span: Span) => void,
): Journal {
  // Requests between acceptance and their end. A request that another launcher accepted is not here, and its events make no spans.
  const taken = new Map<string, Traced>();
  // By node id, between the creation of the record and the end of the launch.
  const launches = new Map<string, Launched>();

  // Called again after the request was put back: the second wait is a span of its own, and the request's span is the same.
  const accept = (id: string, facts: JournalEvent["facts"]) => {
    const record = requests.byId.get(id)?.record;
    const accepted = now();
    const created = record?.createdTime == null ? accepted : createdAt(record.createdTime);
    const trace = traceOf(id, created);
    const { provider, pool, labels, nodes } = facts as { readonly [key: string]: string };
    const attributes = { request: id, provider, pool, labels: String(labels), nodes: Number(nodes) };
    const asked = { ...attributes, requestor: record?.requestor ?? "", event_id: record?.eventId ?? "" };
    const one = { trace, span: spanId(16, id, created), created, accepted, attributes: asked };
    keep(taken, id, one);
    const span = spanId(16, id, "waits", accepted);
    emit({
      trace,
      id: span,
      parent: one.span,
      name: "wait for a pool",
      start: created,
      end: accepted,
      attributes,
    });
  };

  const end = (id: string, error?: string) => {
    const one = taken.get(id);
    if (one === undefined) return;
    taken.delete(id);
    const { trace, span, created, attributes } = one;
    emit({
      trace,
      id: span,
      name: "request",
      start: created,
      end: now(),
      attributes,
      ...(error && { error }),
    });
  };

  const endLaunch = (node: string, record: NodeRecord | undefined, error?: string) => {
    const launch = launches.get(node);
    if (launch === undefined) return;
    launches.delete(node);
    const { request, span, began } = launch;
    const { provider, pool, type, externalId } = record ?? {};
    emit({
      trace: request.trace,
      id: span,
      parent: request.span,
      name: `launch ${type?.join(",") ?? "a node"}`,
      start: began,
      end: now(),
      attributes: {
        node,
        provider: provider ?? "",
        pool: pool ?? "",
        server_id: JSON.stringify(externalId ?? null),
      },
      ...(error && { error }),
    });
  };

  // Steps of deletions and of launches that another process made have no launch here, and are left out.
  const step = (node: string, facts: JournalEvent["facts"]) => {
    const launch = launches.get(node);
    if (launch === undefined) return;
    const { of, attempt, step, began, ms, error } = facts as unknown as StepFacts;
    emit({
      trace: launch.request.trace,
      id: spanId(16, node, of, attempt, step, began),
      parent: launch.span,
      name: `${of}: ${step}`,
      start: began,
      end: began + ms,
      attributes: { node, attempt },
      ...(error && { error }),
    });
  };

  const note = ({ event, request, node, facts, record }: JournalEvent): void => {
    if (event === "request.accepted") accept(request!, facts);
    else if (event === "request.fulfilled") end(request!);
    else if (event === "request.lost" || (event === "request.declined" && facts.state === "failed"))
      end(request!, String(facts.reason ?? facts.error));
    else if (event === "node.created") {
      const of = taken.get(String(facts.request));
      // A node of a request that another launcher accepted has no trace here.
      if (of !== undefined)
        keep(launches, node!, { request: of, span: launchSpan(node!, of.trace), began: now() });
    } else if (event === "node.step") step(node!, facts);
    else if (event === "node.ready") endLaunch(node!, record);
    else if (event === "node.failed" || event === "node.given-up")
      endLaunch(node!, record, String(facts.why ?? facts.error));
  };

  return {
    write(event) {
      journal.write(event);
      note(event);
    },
  };
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
