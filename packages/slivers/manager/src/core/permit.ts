import type { SliverRecord } from "./record.ts";

/** The caller, as its socket or token determines it. */
export interface Caller {
  readonly account: string;
  /**
   * root and control (the launcher's account) may do everything, except that only root may call AdminTicket. Controllers are accounts that
   * documents name. anonymous has no valid token.
   */
  readonly role: "root" | "control" | "controller" | "sliver" | "anonymous";
  readonly generation: number;
}

/** The machine's owner and the launcher. */
export function isTrusted({ role }: Pick<Caller, "role">): boolean {
  return role === "root" || role === "control";
}

/** Roles that may call methods without a target. Methods that are not listed are for root and control only. */
const WITHOUT_TARGET: Readonly<Record<string, readonly Caller["role"][]>> = {
  Help: ["root", "control", "controller", "sliver", "anonymous"],
  Ticket: ["root", "control", "controller", "sliver"],
  GetRecord: ["root", "control", "controller", "sliver"],
  GetXIDs: ["root", "control", "controller"],
  GetSSHKeys: ["root", "control", "controller"],
  AdminTicket: ["root"],
};

/** Whether the caller may call a method that has no target sliver. */
export function permitWithoutTarget(caller: Caller, method: string): boolean {
  return (WITHOUT_TARGET[method] ?? ["root", "control"]).includes(caller.role);
}

/**
 * True for the caller's own sliver, for slivers that delegate to it, and for root and control. The answer for an unknown name is the same
 * as for a sliver without a delegation, so that callers cannot find out which names exist.
 */
export function permitTarget(
  caller: Caller,
  method: string,
  target: string,
  record: SliverRecord | undefined,
): boolean {
  if (isTrusted(caller)) return true;
  if (caller.role === "anonymous") return false;
  // A caller of an earlier generation of the name has no rights on the present sliver.
  if (caller.account === target) return record === undefined || record.generation === caller.generation;
  return (record?.delegations ?? []).some(
    (one) =>
      one.caller === caller.account &&
      (one.generation === undefined || one.generation === caller.generation) &&
      (one.method === undefined || one.method === method),
  );
}
