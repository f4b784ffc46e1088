/**
 * The old names of what came of a launch (docs/contract/operations.md, "Results of launches"). `kind` is ours: `ready`, a driver
 * error's kind, or how it broke off; `step` is where.
 */
export function oldResult(kind: string, step: string): string {
  if (kind === "ready") return "ready";
  if (step === SCAN && (kind === "timeout" || kind === "host-key")) return "error.keyscan";
  return `error.${OLD[kind] ?? "unknown"}`;
}

const SCAN = "scan";

const OLD: Readonly<Record<string, string>> = {
  quota: "quota",
  capacity: "capacity",
  timeout: "servercreatetimeout",
  "host-key": "keyscan",
  lost: "zksession",
  "image-gone": "nodepool",
};
