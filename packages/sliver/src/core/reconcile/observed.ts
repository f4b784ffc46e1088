import type { Phase, Rspec } from "@nodeyard/sliver-protocol";
import type { Sent } from "../traffic.ts";

/** One sliver that a back end finds on the machine, by its own marks; what is not marked is not its business. */
export interface Observed {
  readonly index: number;
  readonly incarnation: number;
  readonly name: string;
  readonly generation: number;
  readonly phase: Exclude<Phase, "absent">;
  /** What the last configure that worked applied. */
  readonly applied?: { readonly digest: string; readonly effective: Rspec };
  /** Absent: it does not run, or nothing of it is counted. */
  readonly sent?: Sent;
}
