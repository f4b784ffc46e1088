import { messageOf } from "@nodeyard/runtime";
import type { Scanner } from "./contract.ts";
import { DriverError } from "./errors.ts";

/** Adapts a scanner whose errors have a `code`: the errors become DriverErrors. Abort reasons pass unchanged. */
export function driverScanner(scanner: Scanner): Scanner {
  return {
    async scan(target) {
      try {
        return await scanner.scan(target);
      } catch (error) {
        target.signal?.throwIfAborted();
        throw new DriverError(kindOf(error), messageOf(error), { cause: error });
      }
    },
  };
}

function kindOf(error: unknown): "timeout" | "host-key" | "transient" | "fatal" {
  if (error instanceof DriverError && (error.kind === "timeout" || error.kind === "host-key"))
    return error.kind;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "keyscan.timeout") return "timeout";
  if (code === "keyscan.host_key_proof" || code === "keyscan.no_common_algorithm") return "host-key";
  return code === "keyscan.queue_full" ? "transient" : "fatal";
}
