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
});
