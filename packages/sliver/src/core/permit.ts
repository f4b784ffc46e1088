import type { SliverRecord } from "./record.ts";

/** Who calls, as the socket or token says. */
export interface Caller {
  readonly account: string;
  /**
   * root and control (the launcher's account) may do everything, but only root AdminTicket; controllers are accounts
   * that documents name; anonymous has shown nothing.
   */
  readonly role: "root" | "control" | "controller" | "sliver" | "anonymous";
  readonly generation: number;
}

/** Who may call what has no target. What is not in the table is for root and control alone. */
const WITHOUT_TARGET: Readonly<Record<string, readonly Caller["role"][]>> = {
  Help: ["root", "control", "controller", "sliver", "anonymous"],
  Ticket: ["root", "control", "controller", "sliver"],
  GetRecord: ["root", "control", "controller", "sliver"],
  GetXIDs: ["root", "control", "controller"],
  GetSSHKeys: ["root", "control", "controller"],
  AdminTicket: ["root"],
};

/** Whether the caller may call a method that is not about one sliver. */
export function permitWithoutTarget(caller: Caller, method: string): boolean {
  return (WITHOUT_TARGET[method] ?? ["root", "control"]).includes(caller.role);
}

/**
 * True for the caller's own sliver, for slivers that delegate to it, and for root and control. The answer for a name that does
 * not exist is the one for a sliver that delegates to no one, so that calls cannot find out which names exist.
 */
export function permitTarget(
  caller: Caller,
  method: string,
  target: string,
  record: SliverRecord | undefined,
): boolean {
  if (caller.role === "root" || caller.role === "control") return true;
  if (caller.role === "anonymous") return false;
  // Not an earlier sliver of the same name.
  if (caller.account === target) return record === undefined || record.generation === caller.generation;
  return (record?.delegations ?? []).some(
    (one) =>
      one.caller === caller.account &&
      (one.generation === undefined || one.generation === caller.generation) &&
      (one.method === undefined || one.method === method),
  );
}
