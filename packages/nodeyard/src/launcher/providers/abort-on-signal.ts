import { abortable, type CallName, type Layer } from "@nodeyard/driver";
import type { Counters } from "../../telemetry/index.ts";

/** What goes step by step has its deadlines from the runner of steps. */
const IN_STEPS: ReadonlySet<CallName> = new Set(["create", "remove", "upload", "removeImage"]);
/** Reasons of signals that mean: it took too long. */
const SILENT: ReadonlySet<unknown> = new Set(["launcher.provider_silent", "launcher.probe_silent"]);

/**
 * The wait for a call ends when its signal aborts, even if the driver ignores it, so that nothing waits for one that
 * never answers (rule 8). The call is left behind, and counted when it was late.
 */
export function abortOnSignal(provider: string, counters: Counters): Layer {
  return async (call, work, signal) => {
    if (IN_STEPS.has(call)) return work();
    try {
      return await abortable(work(), signal);
    } catch (error) {
      const { code } = (signal.reason ?? {}) as { readonly code?: unknown };
      if (SILENT.has(code)) counters.add("launcher.provider_silent", 1, { provider, call });
      throw error;
    }
  };
}
