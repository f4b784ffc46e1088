import type { SliverConfig } from "../../core/index.ts";

/** What no machine enforces yet of what can be asked for. */
export function otherUnenforced({ effective }: Pick<SliverConfig, "effective">): string[] {
  const none: string[] = [];
  if (effective.netDay > 0 || effective.net2Day > 0)
    none.push("netDay, net2Day: traffic is not counted by the day");
  return none;
}
