import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { METHODS } from "../../src/api/methods/index.ts";
import { type Caller, permitTarget, permitWithoutTarget } from "../../src/core/permit.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import { record } from "./arbitrary.ts";

const caller = (account: string, role: Caller["role"], generation = 0): Caller => ({
  account,
  role,
  generation,
});
const of = (name: string, more = {}) => record(name, 1, POLICIES.r0.defaults, [], more);
const method = fc.constantFrom(...METHODS.keys());

describe("32: who may call what", () => {
  test("a caller reaches itself and what delegates to it, and the answer says nothing about what exists", () =>
    fc.assert(
      fc.property(method, fc.constantFrom("controller" as const, "sliver" as const), (name, role) => {
        const ada = caller("ada", role);
        expect(permitTarget(ada, name, "ada", of("ada"))).toBe(true);
        expect(permitTarget(ada, name, "bob", of("bob"))).toBe(false);
        expect(permitTarget(ada, name, "bob", undefined)).toBe(false);
        expect(permitTarget(caller("root", "root"), name, "bob", undefined)).toBe(true);
        expect(permitTarget(caller("anonymous", "anonymous"), name, "anonymous", undefined)).toBe(false);
      }),
    ));

  test("a delegation may be for one method and for one generation of the caller", () => {
    const bob = of("bob", { delegations: [{ caller: "ada", method: "GetRSpec", generation: 4 }] });
    expect(permitTarget(caller("ada", "sliver", 4), "GetRSpec", "bob", bob)).toBe(true);
    expect(permitTarget(caller("ada", "sliver", 4), "Stop", "bob", bob)).toBe(false);
    expect(permitTarget(caller("ada", "sliver", 5), "GetRSpec", "bob", bob)).toBe(false);
    expect(permitTarget(caller("eve", "sliver", 4), "GetRSpec", "bob", bob)).toBe(false);
  });

  test("who had the name before reaches nothing of who has it now", () =>
    expect(permitTarget(caller("ada", "sliver", 4), "Stop", "ada", of("ada", { generation: 5 }))).toBe(
      false,
    ));

  test("without a target: Help is for all callers, keys and ids for root and controllers, AdminTicket for root alone", () => {
    const roles = ["root", "control", "controller", "sliver", "anonymous"] as const;
    const who = (name: string) => roles.filter((role) => permitWithoutTarget(caller("x", role), name));
    expect(who("Help")).toEqual(roles);
    expect(who("GetSSHKeys")).toEqual(["root", "control", "controller"]);
    expect(who("GetXIDs")).toEqual(["root", "control", "controller"]);
    expect(who("AdminTicket")).toEqual(["root"]);
    expect(who("Ticket")).toEqual(["root", "control", "controller", "sliver"]);
    for (const name of ["Deliver", "RotateKeys", "Status", "NobodyKnows"])
      expect(who(name)).toEqual(["root", "control"]);
  });
});
