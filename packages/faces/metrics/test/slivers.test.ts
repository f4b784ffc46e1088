import { expect, test } from "vitest";
import { sliverGauges } from "../src/index.ts";

test("what slivers use: in seconds, bytes and parts of one, by provider, machine, sliver and node", () => {
  const usage = { memory: 4096, memoryKills: 2, cpu: 1500, ioWritten: 512, ioPressure: 25 };
  const machines = [
    {
      name: "big-0",
      error: null,
      faults: { counting: true, waitingThreads: 2 },
      slivers: [{ name: "s42", node: "0000000042", usage }],
    },
    { name: "big-1", error: "no answer", slivers: [] },
  ];
  const sliver = { provider: "lab", machine: "big-0", sliver: "s42", node: "0000000042" };
  expect(sliverGauges([{ provider: "lab", machines }])).toEqual([
    { name: "sliver_machine_up", labels: { provider: "lab", machine: "big-0" }, value: 1 },
    { name: "sliver_machine_counting", labels: { provider: "lab", machine: "big-0" }, value: 1 },
    { name: "sliver_machine_waiting_threads", labels: { provider: "lab", machine: "big-0" }, value: 2 },
    { name: "sliver_memory_bytes", labels: sliver, value: 4096 },
    { name: "sliver_memory_kills", labels: sliver, value: 2 },
    { name: "sliver_cpu_seconds", labels: sliver, value: 1.5 },
    { name: "sliver_io_bytes", labels: { ...sliver, direction: "written" }, value: 512 },
    { name: "sliver_pressure_ratio", labels: { ...sliver, resource: "io" }, value: 0.25 },
    { name: "sliver_machine_up", labels: { provider: "lab", machine: "big-1" }, value: 0 },
  ]);
});

test("of a sliver that is no node of this installation, what is not counted is absent", () => {
  const slivers = [{ name: "ada", node: null, usage: { pids: 3, unknown: 1 } }];
  expect(sliverGauges([{ provider: "lab", machines: [{ name: "m", error: null, slivers }] }])[1]).toEqual({
    name: "sliver_pids",
    labels: { provider: "lab", machine: "m", sliver: "ada", node: "" },
    value: 3,
  });
});
