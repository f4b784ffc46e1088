import { type Clock, type Random, systemRandom } from "@nodeyard/runtime";
import type { Connect, Resolve, Scanner } from "../contract.ts";
import { type ScannerLimits, scannerOver } from "../scanner.ts";
import { connect, resolve } from "./network.ts";
import { secrets } from "./secrets.ts";

/** The handles and limits of a scanner. */
export interface ScannerOptions extends Partial<ScannerLimits> {
  readonly clock: Clock;
  /** Spreads retries; default: random numbers of the operating system. */
  readonly random?: Random;
  /** Default: TCP of this host. */
  readonly connect?: Connect;
  /** Default: the resolver of this host. */
  readonly resolve?: Resolve;
}

/** A scanner on this host's network. Default limits: 100 scans at once, 10,000 waiting. */
export function createScanner({ random = systemRandom, ...options }: ScannerOptions): Scanner {
  const limits = { active: 100, waiting: 10_000, ...options };
  return scannerOver({ connect, resolve, secrets, ...options }, random, limits);
}
