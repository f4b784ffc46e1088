import { expect, test } from "vitest";
import { POLICIES } from "../../src/core/profiles.ts";
import { incoming } from "../core/arbitrary.ts";
import { ApiRig, CONTROL, sliver } from "./rig.ts";

test("the answer to loans that move nothing is the same whether a borrower exists or not", async () => {
  const rig = new ApiRig("v2");
  await rig.start();
  await rig.deliver(1, [
    incoming("ada", 1, { generation: 3, rspec: { ...POLICIES.v2.defaults, cpuShare: 64 } }),
    incoming("bob", 1, { generation: 7 }),
  ]);
  const ada = sliver("ada", 3);
  const set = (to: string, more: object) =>
    rig.json(ada, "SetLoans", ["ada", [{ to, resource: "cpuShare", ...more }]]) as Promise<object>;
  for (const more of [
    { amount: 0 },
    { amount: 0, generation: 6 },
    { amount: 1_000_000 },
    { amount: 1, until: 1 },
  ]) {
    const reported: string[] = [];
    // Names of the same length, so that they can be replaced by one another.
    for (const to of ["bob", "zoe"]) {
      const answers = [
        await set(to, more),
        await rig.json(ada, "GetLoans", ["ada"]),
        await rig.json(ada, "GetRecord"),
        await rig.call(ada, "GetEffectiveRSpec", ["ada"]),
      ];
      reported.push(JSON.stringify(answers).replaceAll(to, "TO"));
    }
    expect(reported[0], JSON.stringify(more)).toBe(reported[1]);
  }
  // A loan that is given is shown with all that it has, and the launcher sees why one is not.
  expect(await set("bob", { amount: 1 })).toMatchObject({ accepted: [{ to: "bob", generation: 7 }] });
  await set("bob", { amount: 1, generation: 6 });
  expect(await rig.json(CONTROL, "GetLoans", ["ada"])).toMatchObject([
    { refusal: "generation", generation: 6 },
  ]);
  expect(await rig.json(ada, "GetLoans", ["ada"])).toMatchObject([{ refusal: "absent", honoured: false }]);
});
