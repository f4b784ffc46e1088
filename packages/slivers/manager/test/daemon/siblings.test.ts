import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkSiblings } from "../../src/daemon/edge/facts.ts";
import { DaemonRig } from "./rig.ts";

describe("whole cores that may be handed out", () => {
  test("are those of the machine", () => {
    checkSiblings([], "0");
    checkSiblings([[0]], "0");
    checkSiblings(
      [
        [0, 2],
        [1, 3],
        [0, 2],
        [1, 3],
      ],
      "0-3,6",
    );
    expect(() => checkSiblings([[0], [1], [2]], "0-1")).toThrow(
      "machine.siblings.2 is about core 2, and this machine has 0-1: list its own (lscpu -e shows them), or leave machine.siblings out to hand out no whole cores",
    );
    expect(() => checkSiblings([[0, 5]], "0-3,6")).toThrow("machine.siblings.0 is about core 5");
  });

  test("are each in their own list", () => {
    expect(() => checkSiblings([[0], [0]], "0-1")).toThrow(
      "machine.siblings.1 is [0]: it lists the threads of one physical core, core 1 itself included",
    );
  });
});

describe("a daemon that is to hand out cores that are not there", () => {
  const rig = new DaemonRig();
  beforeAll(() => rig.prepare());
  afterAll(() => rig.stop());

  test("says so in one line and ends with 1", async () => {
    await rig.configure({ machine: { siblings: [[0, 4000]] } });
    await expect(rig.start()).rejects.toThrow(
      /^exit 1: error machine\.siblings\.0 is about core 4000, and this machine has [\d,-]+: .*\n$/,
    );
  });
});
