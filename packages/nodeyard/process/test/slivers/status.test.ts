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
      rspec: { cpuCap: 500, cpuGuarantee: 250, memoryCap: 1_048_576, disk: 65_536 },
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

test("`--wide` has guarantee, cap and use with a bar, spares and what was killed; as JSON, what REST has", async () => {
  const usage = { cpuNow: 125, memory: 536_870_912 };
  machine.use({ ada: { usage, memoryKills: 2 } });
  await machine.change((slivers) => void slivers.set("ada", { ...slivers.get("ada")!, held: true }));
  await machine.until(({ slivers }) => slivers[0]?.usage !== undefined && slivers[0].held === true);
  const { out, err } = await new Running(["sliverd", "status", machine.socket, "--wide"]).ended;
  expect(err, "a sliver that is no node has no lease to look for").toBe("");
  const half = (line: string) => `\\| ${line} +\\|  +\\| #{15}-{15} \\|`;
  expect(out).toMatch(
    /\| ada +\| +\| +\| busy, suspended +\| cpu +\| 0.125 cores +\| 0.25 cores +\| 0.5 cores +\| +\| #{8}={7}-{15} \|/,
  );
  expect(out).toMatch(new RegExp(half("memory +\\| 512 MiB +\\| +\\| 1.0 GiB")));
  expect(out).toMatch(/\| here +\| +\| +\| machine +\| cpu +\| 0.125 cores +\| 0.25 cores +\| 4 cores /);
  expect(out).toMatch(/# in use/);
  expect(out).toMatch(/\| the default image \| running \|/);
  expect(out).toMatch(/^ada: its memory \(1024 MiB\) was full: the kernel killed 2 processes$/m);
  const json = await new Running(["sliverd", "status", machine.socket, "--wide", "--json"]).ended;
  expect(JSON.parse(json.out)).toMatchObject({
    name: "here",
    uses: { millicores: 125, ram: 512 },
    spares: [{ phase: "running", image: null }],
    slivers: [{ name: "ada", held: true, caps: { millicores: 500, ram: 1_024, "disk-mib": 64 } }],
  });
});

test("`--wide` where no pool is known says that, and shows the rest", async () => {
  const tags = { node: "0000000042" };
  await machine.change(
    (slivers) => void slivers.set("n0000000042", { ...slivers.get("ada")!, name: "n0000000042", tags }),
  );
  await machine.until(({ slivers }) => slivers[1]?.phase === "running");
  const words = ["--state", join(machine.folder, "none"), "sliverd", "status", machine.socket, "--wide"];
  const { code, out, err } = await new Running(words).ended;
  expect({ code, err }).toEqual({
    code: 0,
    err: expect.stringMatching(/^nodeyard: not known here is who has the nodes: /),
  });
  expect(out).toMatch(/\| n0000000042 \| 0000000042 \| +\| busy, /);
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
