import type { SimulationOptions } from "./run.ts";

type Write = Parameters<NonNullable<SimulationOptions["onWrite"]>>[0];

/** Prints a run as it proceeds: every fault, and every write with its effect. Times are virtual milliseconds. */
export function timeline(
  say: (line: string) => void,
): Required<Pick<SimulationOptions, "onWrite" | "onFault">> {
  return {
    onFault: (at, fault) => say(`${stamp(at)} *** ${fault}`),
    onWrite: (write, at) => {
      const how = write.sessionEnd === true ? "session ends" : `zxid ${write.zxid}`;
      say(`${stamp(at)} ${write.client} (${how})`);
      for (const line of described(write)) say(`           ${line}`);
    },
  };
}

function stamp(ms: number): string {
  return ms.toFixed(1).padStart(10);
}

function described({ ops, results }: Write): readonly string[] {
  return ops.map((op, index) => {
    const result = results[index];
    const path = result?.op === "create" ? result.path : op.path;
    const version = "version" in op && op.version !== undefined ? ` at version ${op.version}` : "";
    return `${op.op} ${path}${version}${"data" in op ? summary(op.data) : ""}`;
  });
}

/** The most useful fields of a record. */
function summary(data: Uint8Array | undefined): string {
  try {
    const { state, allocated_to, provider, nodes, declined_by } = JSON.parse(
      Buffer.from(data ?? "").toString(),
    ) as Record<string, unknown>;
    const facts = Object.entries({ state, allocated_to, provider, nodes, declined_by });
    return facts
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => ` ${name}=${JSON.stringify(value)}`)
      .join("");
  } catch {
    return "";
  }
}
