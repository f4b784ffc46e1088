import { paths } from "@nodeyard/model";
import type { CallInfo } from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import { config, Lab, metal } from "./lab.ts";

const LONG = { "max-parallel-jobs": 2, "grace-time": 3_600 };

function claims({ kind, ops }: CallInfo): boolean {
  return kind === "write" && ops.some(({ op, path }) => op === "create" && /\/slots\/\d+\/\d+$/.test(path));
}

/** Somebody writes a record as it is: what was chosen by its former version is refused. */
function touch(lab: Lab, node: string): void {
  const data = lab.cluster.znodes.data(paths.node(node));
  void lab.other.set(paths.node(node), data!);
}

/** A backing node, the only one that there can be, with one of its two slots taken. */
async function half(): Promise<{ readonly lab: Lab; readonly backing: string }> {
  const lab = new Lab();
  await lab.start("a", config(LONG, {}, [metal({ "max-servers": 1 })]));
  return { lab, backing: lab.place(await lab.get()).backing };
}

describe("a claim that is lost", () => {
  test("leaves its slot to the first launch in line, at once", async () => {
    const { lab, backing } = await half();
    let lost = 0;
    lab.fault = (call) => {
      if (!claims(call) || lost > 0) return undefined;
      lost++;
      // The view has it long before the answer, so that no event follows that answer.
      touch(lab, backing);
      return { delayMs: 500 };
    };
    const asked = [await lab.slice(), await lab.slice()];
    await lab.until("one waits for the slot that the other claims", () => lost === 1);
    await lab.run(450);
    expect(lab.claims(backing)).toEqual(["0"]);
    const served = () => asked.filter((id) => lab.request(id)?.state === "fulfilled");
    await lab.until("one of them has it", () => served().length === 1, 1_000);
    expect(lab.claims(backing)).toEqual(["0", "1"]);
    const [member] = lab.members;
    expect(member!.counters.value("launcher.slots", { provider: "slicer", change: "lost" })).toBe(1);
    lab.check();
  });

  test("again and again is tried less and less often, and works when it can", async () => {
    const { lab, backing } = await half();
    let touched = true;
    lab.fault = (call) => {
      if (touched && claims(call)) touch(lab, backing);
      return undefined;
    };
    const lost = () =>
      lab.members[0]!.counters.value("launcher.slots", { provider: "slicer", change: "lost" });
    const asked = await lab.slice();
    await lab.run(1_000);
    const first = lost();
    expect(first).toBeGreaterThan(4);
    expect(first).toBeLessThan(15);
    await lab.run(10_000);
    expect(lost() - first).toBeGreaterThan(5);
    expect(lost() - first).toBeLessThan(25);
    touched = false;
    await lab.fulfilled(asked, 2_000);
    lab.check();
  });
});
