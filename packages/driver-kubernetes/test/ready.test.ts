import { VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import type { Connection, ObjectWatch, Pod } from "../src/client/index.ts";
import { podReady } from "../src/nodes/ready.ts";

const refused = (message: string): Pod => ({
  metadata: { name: "a", namespace: "ci", uid: "1", resourceVersion: "1" },
  spec: { containers: [] },
  status: {
    phase: "Pending",
    conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }],
  },
});

test("a pod for which there is no room fails with the scheduler's last words", async () => {
  const clock = new VirtualClock();
  const states = ["0/1 nodes are available: 1 node is new", "0/1 nodes are available: 1 Insufficient cpu"];
  const watch = {
    // Each look shows all states up to now, as events do.
    wait: (_: object, judge: (pod: Pod) => Pod | undefined, signal: AbortSignal) =>
      new Promise<Pod>((resolve, reject) => {
        for (const state of states) {
          const found = judge(refused(state));
          if (found !== undefined) return resolve(found);
        }
        signal.addEventListener("abort", () => reject(signal.reason));
      }),
  } as unknown as ObjectWatch<Pod>;
  const connection = { get: async () => ({ items: [] }) } as unknown as Connection;
  const place = { namespace: "ci", name: "a" };
  const ready = podReady({ connection, watch, clock, roomMs: 15_000 }, place, new AbortController().signal);
  const failed = expect(ready).rejects.toMatchObject({
    kind: "capacity",
    message: expect.stringContaining("Insufficient cpu"),
  });
  await clock.advance(15_000);
  await failed;
});
