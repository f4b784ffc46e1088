/**
 * One figure as statsd has it. A count is a difference, a timing milliseconds. The protocol:
 * https://github.com/statsd/statsd/blob/master/docs/metric_types.md.
 */
export interface StatsdSample {
  /** With dots between its levels. */
  readonly key: string;
  /** Gauge, counter or timer. */
  readonly type: "g" | "c" | "ms";
  readonly value: number;
}

/** Datagrams stay below this, bytes, so that none is ever cut in pieces on its way. */
export const DATAGRAM_BYTES = 512;

/**
 * The lines of a sample, as Python's client writes them (docs/contract/operations.md, "Statsd"). A negative gauge is preceded by a zero,
 * because a server would take it for a difference. A value that is not finite has no line.
 */
export function linesOf({ key, type, value }: StatsdSample): readonly string[] {
  if (!Number.isFinite(value)) return [];
  if (type === "ms") return [`${key}:${value.toFixed(6)}|ms`];
  const line = `${key}:${plain(value)}|${type}`;
  return type === "g" && value < 0 ? [`${key}:0|g\n${line}`] : [line];
}

/** Part of a key: dots would make levels of their own, and the rest has a meaning in the protocol. */
export function keyPart(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]/g, "_");
}

/** Joins lines into datagrams of less than DATAGRAM_BYTES; a longer line gets a datagram of its own. */
export function datagramsOf(lines: readonly string[]): readonly string[] {
  const datagrams: string[] = [];
  let open = "";
  for (const line of lines) {
    const joined = open === "" ? line : `${open}\n${line}`;
    if (open === "" || joined.length < DATAGRAM_BYTES) {
      open = joined;
      continue;
    }
    datagrams.push(open);
    open = line;
  }
  if (open !== "") datagrams.push(open);
  return datagrams;
}

/** Without an exponent, which not every server reads. */
function plain(value: number): string {
  const text = String(value);
  if (!text.includes("e")) return text;
  return Math.abs(value) < 1 ? value.toFixed(6) : String(BigInt(Math.round(value)));
}
