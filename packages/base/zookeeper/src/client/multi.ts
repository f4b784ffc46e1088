import { errorFromCode, MultiFailed, ProtocolError, type ZooKeeperError } from "../errors.ts";
import type { MultiOp, MultiOpResult, MultiReadOp, MultiReadResult } from "../types.ts";
import type { MultiResult, Stat } from "../wire/messages.ts";
import { ErrorCode } from "../wire/op-code.ts";

/** The results of a multi that the server committed as transaction `zxid`, or the error of a multi that it refused. */
export function multiResults(
  ops: readonly MultiOp[],
  results: readonly MultiResult[],
  zxid: bigint,
): MultiOpResult[] | ZooKeeperError {
  if (results.length !== ops.length) return miscounted(results.length, ops.length);
  if (results.some((result) => result.type === "error")) return failureOf(ops, results);
  return ops.map((op, index) => {
    const result = results[index] as { readonly path: string; readonly stat?: Stat };
    switch (op.op) {
      case "create":
        return {
          op: "create",
          path: result.path,
          czxid: zxid,
          ...(result.stat === undefined ? {} : { stat: result.stat }),
        };
      case "set":
        return { op: "set", stat: result.stat! };
      default:
        return { op: op.op };
    }
  });
}

/**
 * The server answers operations before the failed one with 0 and those after it with "runtime inconsistency". Only the
 * failed operation has a code with the reason.
 */
function failureOf(ops: readonly MultiOp[], results: readonly MultiResult[]): MultiFailed {
  const codes = results.map((result) => (result.type === "error" ? result.err : ErrorCode.ok));
  let index = codes.findIndex((code) => code !== ErrorCode.ok && code !== ErrorCode.runtimeInconsistency);
  if (index < 0) index = codes.findIndex((code) => code !== ErrorCode.ok);
  const { op, path } = ops[index]!;
  return new MultiFailed(index, errorFromCode(codes[index]!, { op, path }));
}

/** The result of each operation of a multiRead. An operation that failed yields its error and does not fail the others. */
export function multiReadResults(
  ops: readonly MultiReadOp[],
  results: readonly MultiResult[],
): MultiReadResult[] | ZooKeeperError {
  if (results.length !== ops.length) return miscounted(results.length, ops.length);
  return results.map((result, index): MultiReadResult => {
    const { op, path } = ops[index]!;
    if (result.type === "error") return { op: "error", error: errorFromCode(result.err, { op, path }) };
    if ("children" in result) return { op: "children", children: result.children };
    const { data, stat } = result as Extract<MultiResult, { data: Buffer }>;
    return { op: "get", data, stat };
  });
}

function miscounted(got: number, wanted: number): ProtocolError {
  return new ProtocolError(`${got} results for ${wanted} operations`, { op: "multi", outcome: "unknown" });
}
