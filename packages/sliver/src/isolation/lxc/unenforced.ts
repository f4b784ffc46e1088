import type { SliverConfig } from "../../core/index.ts";

/** What no machine enforces yet of what can be asked for. */
export function otherUnenforced({ effective }: Pick<SliverConfig, "effective">): string[] {
  const none: string[] = [];
  if (effective.net2Day > 0)
    none.push("net2Day: no destinations are exempt, so all traffic counts for netDay");
  return none;
}
