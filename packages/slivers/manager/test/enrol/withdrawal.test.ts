import { spawn } from "node:child_process";
import { describe, expect, test } from "vitest";
import { requireRoot } from "../../../../../testing/skipped.ts";
import { processesOf } from "../../src/enrol/edge/service.ts";
import { LAYOUT, REMOVED, REMOVED_LAST } from "../../src/enrol/parts.ts";
import { type Enrolment, planWithdrawal } from "../../src/enrol/plan.ts";

const whole: Enrolment = {
  running: true,
  paths: [...REMOVED, ...REMOVED_LAST],
  user: true,
  lost: undefined,
  slivers: [],
  sshd: true,
};
const nothing: Enrolment = { ...whole, running: false, paths: [], user: false, sshd: false, lost: "no file" };

describe("what is to be done so that nothing of an enrolment is left", () => {
  test("the daemon first; the programs, which do it, after the user, and the link to them before them", () => {
    const { changes, dismantle } = planWithdrawal(whole);
    expect(dismantle).toBe(true);
    expect(changes.slice(0, 2)).toEqual([
      "stop sliverd",
      "end every sliver, and remove their files, rules and groups",
    ]);
    expect(changes.slice(-5)).toEqual([
      "remove the user nodeyard-control",
      `remove ${LAYOUT.sshdLoaded}`,
      `remove ${LAYOUT.settings}`,
      `remove ${LAYOUT.current}`,
      `remove ${LAYOUT.programs}`,
    ]);
  });

  test("half an enrolment has less to do, and a machine without one nothing", () => {
    const half = { ...nothing, paths: [LAYOUT.settings], user: true };
    expect(planWithdrawal(half)).toEqual({
      changes: ["remove the user nodeyard-control", `remove ${LAYOUT.settings}`],
      dismantle: false,
    });
    expect(planWithdrawal(nothing)).toEqual({ changes: [], dismantle: false });
  });

  test("without the daemon's file, a withdrawal that could end slivers is refused, with the remedy", () => {
    const lost = `${LAYOUT.config} is not valid JSON`;
    const slivers = [
      "sliver ny-1.1",
      "rules inet nodeyard-slivers",
      "interface ny-v1",
      "interface ny-up",
      "a",
      "b",
    ];
    const reported = (() => {
      try {
        return planWithdrawal({ ...whole, lost, slivers }).changes.join();
      } catch (error) {
        return (error as Error).message;
      }
    })();
    expect(reported).toMatch(
      /^\/etc\/nodeyard-sliver\/sliverd.json is not valid JSON, .* sliver ny-1.1, .* and 2 more;/,
    );
    expect(reported).toMatch(/nothing was removed: restore .* sliverd install/);
    expect(planWithdrawal({ ...whole, lost }).dismantle).toBe(false);
  });
});

test.skipIf(requireRoot())("a user's processes are found by any of their ids, and root's never", async () => {
  // Of no account: nobody else has it.
  const uid = 61_007;
  const child = spawn("sleep", ["60"], { uid, gid: uid, stdio: "ignore" });
  try {
    await new Promise((resolve) => child.once("spawn", resolve));
    expect(processesOf(uid)).toEqual([child.pid]);
    expect(processesOf(uid + 1)).toEqual([]);
    expect(processesOf(0)).toEqual([]);
  } finally {
    child.kill("SIGKILL");
  }
});
