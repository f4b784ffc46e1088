import { type Clock, type Random, systemRandom } from "@nodeyard/runtime";
import type { Connect, Resolve, Scanner } from "../contract.ts";
import { type ScannerLimits, scannerOver } from "../scanner.ts";
import { connect, resolve } from "./network.ts";
import { secrets } from "./secrets.ts";

/** What a scanner works with. */
export interface ScannerOptions extends Partial<ScannerLimits> {
  readonly clock: Clock;
  /** Spreads retries; default: the machine's own entropy. */
  readonly random?: Random;
  /** Default: TCP of this machine. */
  readonly connect?: Connect;
  /** Default: the resolver of this machine. */
  readonly resolve?: Resolve;
}

/** A scanner on the machine's network: at most 100 scans at once, 10,000 waiting, unless the options say otherwise. */
export function createScanner({ random = systemRandom, ...options }: ScannerOptions): Scanner {
  const limits = { active: 100, waiting: 10_000, ...options };
  return scannerOver({ connect, resolve, secrets, ...options }, random, limits);
}
