import { VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import type { Connection, KubeObject, ObjectWatch } from "../src/client/index.ts";
import { podReady } from "../src/nodes/ready.ts";

const refused = (message: string): KubeObject => ({
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
    wait: (_: object, judge: (pod: KubeObject) => KubeObject | undefined, signal: AbortSignal) =>
      new Promise<KubeObject>((resolve, reject) => {
        for (const state of states) {
          const found = judge(refused(state));
          if (found !== undefined) return resolve(found);
        }
        signal.addEventListener("abort", () => reject(signal.reason));
      }),
  } as unknown as ObjectWatch;
  const connection = { get: async () => ({ items: [] }) } as unknown as Connection;
  const tag = { installation: "i", provider: "kube", pool: "ci", nodeId: "0000000001" };
  const remarks: string[] = [];
  const remark = (_: object, text: string) => void remarks.push(text);
  const site = { cluster: connection, clock, config: { own: { roomMs: 300_000 } }, remark } as never;
  const place = { tag, namespace: "ci", name: "a" };
  const ready = podReady(site, watch, place, new AbortController().signal);
  const failed = expect(ready).rejects.toMatchObject({
    kind: "capacity",
    message: expect.stringContaining("Insufficient cpu"),
  });
  // The first words are told while it waits: an autoscaler may be late.
  await clock.advance(299_000);
  expect(remarks).toEqual([expect.stringContaining("1 node is new")]);
  await clock.advance(1_000);
  await failed;
});

test("a pod whose room comes late is waited for, and then has its whole time to become ready", async () => {
  const clock = new VirtualClock();
  let show: (pod: KubeObject) => void = () => {};
  let pod = refused("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims");
  const watch = {
    get: () => pod,
    wait: (_: object, judge: (pod: KubeObject) => KubeObject | undefined, signal: AbortSignal) =>
      new Promise<KubeObject>((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        show = (next) => {
          pod = next;
          const found = judge(next);
          if (found !== undefined) resolve(found);
        };
        show(pod);
      }),
  } as unknown as ObjectWatch;
  const connection = { get: async () => ({ items: [] }) } as unknown as Connection;
  const tag = { installation: "i", provider: "kube", pool: "ci", nodeId: "0000000001" };
  const site = {
    cluster: connection,
    clock,
    config: { own: { roomMs: 300_000 } },
    remark: () => {},
  } as never;
  const ready = podReady(site, watch, { tag, namespace: "ci", name: "a" }, new AbortController().signal);
  await clock.advance(280_000);
  show({ ...pod, status: { phase: "Pending", conditions: [] } });
  await clock.advance(290_000);
  const conditions = [{ type: "Ready", status: "True" }];
  show({ ...pod, status: { phase: "Running", conditions } } as KubeObject);
  await expect(ready).resolves.toMatchObject({ status: { phase: "Running" } });
});
