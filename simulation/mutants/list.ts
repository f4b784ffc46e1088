import { CAPACITY } from "./list/capacity.ts";
import { CLIENTS } from "./list/clients.ts";
import { DOUBT } from "./list/doubt.ts";
import { FENCES } from "./list/fences.ts";
import { HOSTS } from "./list/hosts.ts";
import { IMAGES } from "./list/images.ts";
import { NODES } from "./list/nodes.ts";
import { REQUESTS } from "./list/requests.ts";
import { SCHEDULER_FAULTS } from "./list/scheduler.ts";
import { SLIVER_HOST } from "./list/sliver-host.ts";
import { SLOTS } from "./list/slots.ts";
import { SWEEPS } from "./list/sweeps.ts";
import { TREE_FAULTS } from "./list/tree.ts";
import { UNREADABLES } from "./list/unreadable.ts";
import type { Mutant } from "./mutant.ts";

/** One mutant for each guarantee and each fence: add one with each new guarantee or fence. */
export const MUTANTS: readonly Mutant[] = [
  ...FENCES,
  ...REQUESTS,
  ...NODES,
  ...CAPACITY,
  ...SCHEDULER_FAULTS,
  ...HOSTS,
  ...CLIENTS,
  ...SLOTS,
  ...SWEEPS,
  ...TREE_FAULTS,
  ...DOUBT,
  ...UNREADABLES,
  ...IMAGES,
  ...SLIVER_HOST,
];

export function mutantOf(name: string): Mutant {
  const found = MUTANTS.find((mutant) => mutant.name === name);
  if (found === undefined) throw new Error(`there is no mutant ${name}: see npm run mutate -- --list`);
  return found;
}
