/** A body as it was computed at one moment. */
export interface Body {
  readonly type: string;
  readonly bytes: Buffer;
  /** Wall clock, milliseconds. */
  readonly computed: number;
}

/** What is sent. `bytes` undefined: a status without a body. */
export interface Reply {
  readonly status: 200 | 206 | 304 | 416;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer | undefined;
}

/** How long a body counts as fresh, milliseconds: as `max-age` and `Expires` say it to clients. */
export const FRESH_MS = 1_000;

/**
 * What a body is answered with: whole, a range of it, or that nothing has changed (docs/contract/operations.md, "Headers"). A time in the
 * future counts as "not changed since", as the old server has it.
 */
export function replyWith(
  { type, bytes, computed }: Body,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Reply {
  // HTTP dates have whole seconds.
  const second = Math.floor(computed / 1000) * 1000;
  const common = {
    "access-control-allow-origin": "*",
    "cache-control": "max-age=1, public",
    "last-modified": new Date(second).toUTCString(),
    expires: new Date(second + FRESH_MS).toUTCString(),
    "accept-ranges": "bytes",
    // Pages of another origin get less, so a cache must keep both answers apart.
    vary: "accept, origin",
  };
  const since = Date.parse(one(headers["if-modified-since"]) ?? "");
  if (since >= second) return { status: 304, headers: common, bytes: undefined };
  const whole = { ...common, "content-type": type };
  const range = rangeIn(one(headers.range), bytes.length);
  // What a range was taken of may have changed: then all of it is wanted.
  if (range === undefined || headers["if-range"] !== undefined) return { status: 200, headers: whole, bytes };
  if (range === "unsatisfiable")
    return {
      status: 416,
      headers: { ...common, "content-range": `bytes */${bytes.length}` },
      bytes: undefined,
    };
  const [from, to] = range;
  return {
    status: 206,
    headers: { ...whole, "content-range": `bytes ${from}-${to}/${bytes.length}` },
    bytes: bytes.subarray(from, to + 1),
  };
}

/** First and last byte. Undefined: there is no range that we serve, and all of it is sent (RFC 9110 section 14.2). */
function rangeIn(
  range: string | undefined,
  length: number,
): readonly [number, number] | "unsatisfiable" | undefined {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  const end = length - 1;
  const [from, to] =
    first === "" ? [Math.max(0, length - Number(last)), end] : [Number(first), Number(last || end)];
  if (first !== "" && last !== "" && to < from) return undefined;
  return from > end || (first === "" && Number(last) === 0) ? "unsatisfiable" : [from, Math.min(to, end)];
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
