import { createHash } from "node:crypto";

/** A completed part of a trace. Times are milliseconds since the epoch. */
export interface Span {
  /** 32 hexadecimal digits. */
  readonly trace: string;
  /** 16 hexadecimal digits. */
  readonly id: string;
  /** The span that contains this one; absent for the root of the trace. */
  readonly parent?: string;
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
  /** The error message; absent when the span succeeded. */
  readonly error?: string;
}

/** The span of another process under which further spans are made. */
export interface TraceContext {
  readonly trace: string;
  readonly span: string;
}

/** The W3C `traceparent` header (https://www.w3.org/TR/trace-context/, "traceparent Header") of a sampled trace. */
export function traceparentOf({ trace, span }: TraceContext): string {
  return `00-${trace}-${span}-01`;
}

/** Undefined for text that is not a `traceparent`, or belongs to a trace that is not sampled. */
export function parseTraceparent(text: string): TraceContext | undefined {
  const [, trace, span, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text) ?? [];
  if (trace === undefined || span === undefined || (Number.parseInt(flags!, 16) & 1) === 0) return undefined;
  return /^0+$/.test(trace) || /^0+$/.test(span) ? undefined : { trace, span };
}

/** An id with this number of hexadecimal digits. The same words yield the same id, so that processes agree without talking. */
export function spanId(digits: 16 | 32, ...words: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(words)).digest("hex").slice(0, digits);
}
