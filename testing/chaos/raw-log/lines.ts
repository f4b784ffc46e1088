import type { AppliedWrite, Op } from "@nodeyard/tree";

/** A write of the raw log as a line of text. Of the results only what a reader needs is kept: the paths. */
export function encodeWrite(write: AppliedWrite): string {
  const ops = write.ops.map((op, index) => {
    const result = write.results[index];
    const path = result?.op === "create" ? result.path : op.path;
    const data = "data" in op && op.data !== undefined ? Buffer.from(op.data).toString("base64") : undefined;
    const version = op.op === "set" ? op.version : undefined;
    return { op: op.op, path, data, sequential: op.op === "create" && op.sequential === true, version };
  });
  const { at, client, sessionEnd } = write;
  return JSON.stringify({
    zxid: String(write.zxid),
    at,
    client,
    session: String(write.session),
    sessionEnd,
    ops,
  });
}

interface Line {
  readonly zxid: string;
  readonly at: number;
  readonly client: string;
  readonly session: string;
  readonly sessionEnd?: true;
  readonly ops: readonly {
    readonly op: Op["op"];
    readonly path: string;
    readonly data?: string;
    readonly sequential: boolean;
    readonly version?: number;
  }[];
}

/** Undefined for a line that a killed process left unfinished. */
export function decodeWrite(text: string): AppliedWrite | undefined {
  let line: Line;
  try {
    line = JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
  return {
    zxid: BigInt(line.zxid),
    at: line.at,
    client: line.client,
    session: BigInt(line.session),
    ops: line.ops.map(({ op, path, data, sequential, version }) =>
      madeOp(op, path, Buffer.from(data ?? "", "base64"), { sequential, version }),
    ),
    // The results are used only for the paths that the tree assigned.
    results: [],
    ...(line.sessionEnd === undefined ? {} : { sessionEnd: line.sessionEnd }),
  };
}

/** `version`: the one that a set was made for; absent: whatever there was. */
export function madeOp(
  op: Op["op"],
  path: string,
  data: Uint8Array,
  {
    sequential = false,
    version,
  }: { readonly sequential?: boolean; readonly version?: number | undefined } = {},
): Op {
  if (op === "create") return { op, path, data, sequential };
  if (op === "set") return version === undefined ? { op, path, data } : { op, path, data, version };
  return { op, path };
}
