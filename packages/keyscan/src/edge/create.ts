import type { Connect, Resolve, ScanClock, Scanner } from "../contract.ts";
import { type ScannerLimits, scannerOver } from "../scanner.ts";
import { connect, resolve } from "./network.ts";
import { secrets } from "./secrets.ts";

export interface ScannerOptions extends Partial<ScannerLimits> {
  readonly clock: ScanClock;
  /** Spreads retries; default: the machine's own chance. */
  readonly random?: { float(): number };
  /** Default: TCP of this machine. */
  readonly connect?: Connect;
  /** Default: the resolver of this machine. */
  readonly resolve?: Resolve;
}

/** A scanner on the machine's network: at most 100 scans at once, 10,000 waiting. */
export function createScanner(options: ScannerOptions): Scanner {
  const float = options.random === undefined ? Math.random : () => options.random!.float();
  const handles = {
    clock: options.clock,
    connect: options.connect ?? connect,
    resolve: options.resolve ?? resolve,
    secrets,
  };
  return scannerOver(handles, float, { active: options.active ?? 100, waiting: options.waiting ?? 10_000 });
}
