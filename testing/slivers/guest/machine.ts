import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { type Accelerator, commandLine, type GuestMachine } from "./command-line.ts";
import { stream } from "./stream.ts";

/** Milliseconds in which a guest under KVM must report that it is up; otherwise a stock kernel cannot use this KVM. */
const PROBE = 45_000;
const UP = "nodeyard guest: up";

export interface GuestRun {
  readonly accelerator: Accelerator;
  /** The output of its second serial line. */
  readonly results: string;
}

/**
 * Boots the guest and resolves when it has ended. KVM is used only if this boot shows that it works: on some machines the device can be
 * opened, but no stock kernel boots.
 */
export async function runGuest(
  machine: Omit<GuestMachine, "accelerator">,
  limit: number,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<GuestRun> {
  if (existsSync("/dev/kvm")) {
    const run = await boot({ ...machine, accelerator: "kvm" }, limit, PROBE, onLine, signal);
    signal.throwIfAborted();
    if (run !== undefined) return run;
    onLine("KVM did not bring the guest up; it boots with TCG, which takes longer");
  }
  const run = await boot({ ...machine, accelerator: "tcg" }, limit, limit, onLine, signal);
  signal.throwIfAborted();
  if (run === undefined) throw new Error("the guest never came up");
  return run;
}

/** Undefined when it was not up within `patience` milliseconds. */
async function boot(
  machine: GuestMachine,
  limit: number,
  patience: number,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<GuestRun | undefined> {
  const { accelerator } = machine;
  const abort = new AbortController();
  let up = false;
  const late = setTimeout(() => abort.abort(), patience);
  const end = setTimeout(() => abort.abort(), limit);
  try {
    await stream(
      "qemu-system-x86_64",
      commandLine(machine),
      (line) => {
        if (line.includes(UP)) {
          up = true;
          clearTimeout(late);
        }
        onLine(line.trimEnd());
      },
      AbortSignal.any([abort.signal, signal]),
    );
  } catch (error) {
    if (signal.aborted) return undefined;
    if (!up && (abort.signal.aborted || accelerator === "kvm")) return undefined;
    if (!abort.signal.aborted) throw error;
    throw new Error(`the guest did not end within ${limit / 60_000} minutes`, { cause: error });
  } finally {
    clearTimeout(late);
    clearTimeout(end);
  }
  return up ? { accelerator, results: await readFile(machine.results, "utf8") } : undefined;
}
