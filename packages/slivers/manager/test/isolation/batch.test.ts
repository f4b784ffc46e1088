import { describe, expect, test } from "vitest";
import { together } from "../../src/isolation/edge/files.ts";
import { batch, batchFailures } from "../../src/isolation/network/edge/batch.ts";
import { sentByIndex } from "../../src/isolation/network/shape.ts";

const lines = [{ text: "first", mayFail: /File exists/ }, { text: "second" }, { text: "third" }];

describe("many commands in one process", () => {
  test("a failure that means success is none; any other is reported with its own line", () => {
    expect(batchFailures(lines, ["RTNETLINK answers: File exists", "Command failed -:1"])).toEqual([]);
    expect(
      batchFailures(lines, [
        "RTNETLINK answers: File exists",
        "Command failed -:1",
        "Warning: quantum of class is big.",
        "Error: no such thing.",
        "Command failed -:3",
      ]),
    ).toEqual([{ line: lines[2], said: "Warning: quantum of class is big.; Error: no such thing." }]);
    // The same words about a line that may not fail, and other words about the one that may.
    expect(batchFailures(lines, ["File exists", "Command failed -:2"])).toHaveLength(1);
    expect(batchFailures(lines, ["Operation not permitted", "Command failed -:1"])).toHaveLength(1);
  });

  test("what is about no line is not taken for a line's", () => {
    expect(batchFailures(lines, ["Cannot open netlink socket"])).toBeUndefined();
    expect(batchFailures(lines, ["File exists", "Command failed -:4"])).toBeUndefined();
  });

  test("the real programs: all lines are run, and what may not fail is an error", async () => {
    const { signal } = new AbortController();
    const mayFail = /Cannot find device|does not exist/;
    const missing = { text: "link show dev ny-none" };
    await batch("ip", [{ ...missing, mayFail }, { text: "link show dev lo" }], signal);
    await expect(batch("ip", [{ ...missing, mayFail }, missing], signal)).rejects.toThrow(
      /^ip link show dev ny-none: .*ny-none/,
    );
  });
});

test("the bytes that each sliver has sent are found by its class", () => {
  const shown = `class htb 1:ffff root rate 1Mbit ceil 1Mbit burst 256Kb cburst 1600b
 Sent 300 bytes 4 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0

class htb 1:fffe parent 1:ffff prio 0 rate 8Kbit ceil 1Mbit burst 1600b cburst 1600b
 Sent 5 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)

class htb 1:1 parent 1:ffff prio 0 rate 8Kbit ceil 8Kbit burst 1600b cburst 1600b
 Sent 100 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)

class htb 1:fa0 parent 1:ffff leaf 8001: prio 0 rate 8Kbit ceil 8Kbit burst 1600b cburst 1600b
 Sent 195 bytes 2 pkt (dropped 9, overlimits 0 requeues 0)
`;
  expect([...sentByIndex(shown)]).toEqual([
    [1, 100],
    [4000, 195],
  ]);
  expect(sentByIndex("").size).toBe(0);
});

test("together waits for all, also after a failure, and tells the first in order", async () => {
  const ended: string[] = [];
  const work = async (name: string, turns: number, error?: Error) => {
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    ended.push(name);
    if (error !== undefined) throw error;
  };
  const failing = together(
    work("a", 9, new Error("a failed")),
    work("b", 1, new Error("b failed")),
    work("c", 20),
  );
  await expect(failing).rejects.toThrow("a failed");
  expect(ended).toEqual(["b", "a", "c"]);
});
