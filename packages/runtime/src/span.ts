import { createHash } from "node:crypto";

/** A part of a trace that has ended, whoever takes it. Times are milliseconds since the epoch. */
export interface Span {
  /** 32 hexadecimal digits. */
  readonly trace: string;
  /** 16 hexadecimal digits. */
  readonly id: string;
  /** The span that it is a part of; absent: it is the whole. */
  readonly parent?: string;
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
  /** Why it failed; absent: it did not. */
  readonly error?: string;
}

/** The span that what another process does is a part of. */
export interface TraceContext {
  readonly trace: string;
  readonly span: string;
}

/** As W3C's `traceparent` has it (https://www.w3.org/TR/trace-context/, "traceparent Header"), of a trace that is recorded. */
export function traceparentOf({ trace, span }: TraceContext): string {
  return `00-${trace}-${span}-01`;
}

/** Undefined for what is no `traceparent`, or is one of a trace that nobody records. */
export function parseTraceparent(text: string): TraceContext | undefined {
  const [, trace, span, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text) ?? [];
  if (trace === undefined || span === undefined || (Number.parseInt(flags!, 16) & 1) === 0) return undefined;
  return /^0+$/.test(trace) || /^0+$/.test(span) ? undefined : { trace, span };
}

/** An id of so many hexadecimal digits, the same for the same words. */
export function spanId(digits: 16 | 32, ...words: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(words)).digest("hex").slice(0, digits);
}
