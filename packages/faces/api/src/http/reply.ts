/** A body as it was computed at one moment. */
export interface Body {
  readonly type: string;
  readonly bytes: Buffer;
  /** Wall clock, milliseconds. */
  readonly computed: number;
}

/** What is sent. `bytes` undefined: a status without a body. */
export interface Reply {
  readonly status: 200 | 304;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer | undefined;
}

/** How long a body counts as fresh, milliseconds: as `max-age` and `Expires` say it to clients. */
export const FRESH_MS = 1_000;

/**
 * What a body is answered with: whole, or that nothing has changed (docs/contract/operations.md, "Headers"). A time in the
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
    // Pages of another origin get less, so a cache must keep both answers apart.
    vary: "accept, origin",
  };
  const since = Date.parse(one(headers["if-modified-since"]) ?? "");
  if (since >= second) return { status: 304, headers: common, bytes: undefined };
  return { status: 200, headers: { ...common, "content-type": type }, bytes };
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
