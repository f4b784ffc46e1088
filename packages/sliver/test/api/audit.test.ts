import { describe, expect, test } from "vitest";
import { ApiRig, sliver } from "./rig.ts";

const ada = sliver("ada");
const started = async () => {
  const rig = new ApiRig("v2");
  await rig.start();
  await rig.list(1, "ada", "bob");
  return rig;
};

describe("decisions", () => {
  test("every one is in the audit log, with who, what and how it went", async () => {
    const rig = await started();
    await rig.call(ada, "Stop", ["bob"]).catch(() => undefined);
    await rig.call(ada, "SetLoans", ["ada", "x"]).catch(() => undefined);
    expect(rig.audit).toMatchObject([
      {
        account: "ada",
        role: "sliver",
        dialect: "v2",
        method: "Stop",
        target: "bob",
        verdict: "denied",
        code: 108,
      },
      { method: "SetLoans", target: "ada", verdict: "allowed" },
      { method: "SetLoans", target: "ada", verdict: "fault", code: 104 },
    ]);
  });

  test("a change that cannot be noted is not made", async () => {
    const rig = await started();
    const before = rig.manager.state;
    rig.audit.push = () => {
      throw new Error("ENOSPC");
    };
    await expect(rig.call(ada, "SetLoans", ["ada", []])).rejects.toThrow();
    expect(rig.manager.state).toBe(before);
  });

  test("a sliver that calls without end is told to wait, costs no more lines, and keeps nobody else", async () => {
    const rig = await started();
    for (let call = 0; call < 100; call++) await rig.call(ada, "Help");
    await expect(rig.call(ada, "Help")).rejects.toMatchObject({
      code: 1,
      message: expect.stringContaining("too many"),
    });
    expect(rig.audit).toHaveLength(100);
    await rig.call(sliver("bob"), "Help");
    for (let call = 0; call < 200; call++) await rig.call({ ...ada, role: "root" }, "Help");
    await rig.pass(1000);
    for (let call = 0; call < 10; call++) await rig.call(ada, "Help");
    await expect(rig.call(ada, "Help")).rejects.toThrow("too many");
  });
});
