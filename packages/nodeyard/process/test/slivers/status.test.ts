import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Machine } from "../../../../../testing/slivers/index.ts";
import { Running } from "../../../cli/test/nodeyard.ts";

const machine = new Machine("here");
beforeAll(async () => {
  await machine.start({ machine: { cpu: 4000, highestIndex: 30, spares: 1 } });
  await machine.change((slivers) => {
    slivers.set("ada", {
      name: "ada",
      generation: 1,
      instantiation: "plc-instantiated",
      rspec: { cpuCap: 500, disk: 65_536 },
    });
  });
  await machine.until(
    ({ slivers, spares }) => slivers[0]?.phase === "running" && spares?.[0]?.phase === "running",
  );
});
afterAll(() => machine.stop());

test("`sliverd status` asks the manager of this machine by its socket", async () => {
  const reported = await new Running(["sliverd", "status", machine.socket, "--json"]).ended;
  expect(reported).toMatchObject({ code: 0, err: "" });
  expect(JSON.parse(reported.out)).toMatchObject([
    { sliver: "ada", use: "busy", phase: "running", settled: true },
    { sliver: "spare of the default image", node: null, use: "spare", phase: "running" },
  ]);
  const table = await new Running(["sliverd", "status", machine.socket]).ended;
  expect(table.out).toMatch(/\| ada .*\| running .*\| cpuCap 500 /);
});

test("one that is not there is named in one line", async () => {
  const socket = join(machine.folder, "none.sock");
  const { code, err } = await new Running(["sliverd", "status", socket]).ended;
  expect(code).toBe(1);
  expect(err.trim().split("\n")).toEqual([
    expect.stringContaining(
      `no answer from the sliver manager at ${socket}: no process listens there (ENOENT)`,
    ),
  ]);
});
