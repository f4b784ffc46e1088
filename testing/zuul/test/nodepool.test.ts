import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../patience.ts";
import { requireZuul } from "../require.ts";
import { ZuulSite } from "../site.ts";
import { type ListedNode, makeYard, type StoreName, type Yard } from "../yard.ts";

const STORES: readonly StoreName[] = ["zookeeper", "embedded"];
const SOON = { timeout: patient(120_000), interval: 300 };

describe.skipIf(requireZuul()).each(STORES)(
  "Zuul's scheduler and executor on nodes of Nodeyard, on %s",
  (store) => {
    let yard: Yard;
    let zuul: ZuulSite;
    const file = (name: string) => join(zuul.folder, name);
    /** What jobs wrote: the ref each, in the order in which they ran. */
    const ran = () => (existsSync(file("ran")) ? readFileSync(file("ran"), "utf8").trim().split("\n") : []);
    const nodes = () => yard.json<readonly ListedNode[]>("list", "--detail");
    const requests = () => yard.json<readonly { readonly id: string }[]>("request-list");

    beforeAll(async () => {
      yard = await makeYard(store);
      // Nobody else writes into the folder, whose name the jobs' commands need.
      const note = "echo {{ zuul.project.name }} {{ zuul.ref }} >> {{ zuul_folder }}/ran";
      zuul = await ZuulSite.make({
        hosts: yard.hosts,
        tls: yard.tls,
        pipelines: {
          unit: { labels: ["small", "small"], command: note },
          broken: { labels: ["small"], command: "false" },
          slow: { labels: ["narrow"], command: "until [ -e {{ zuul_folder }}/go ]; do sleep 0.2; done" },
          narrow: { labels: ["narrow"], command: note },
          urgent: { labels: ["narrow"], command: note, precedence: "high" },
        },
      });
      const { machine } = zuul;
      await yard.start(`
labels: [{name: small}, {name: narrow}]
providers:
  - name: lab
    driver: static
    pools:
      - name: main
        nodes:
${host("127.0.0.1", "small", 2)}
${host("localhost", "narrow", 1)}
`);
      function host(name: string, label: string, jobs: number): string {
        return `          - {name: ${name}, labels: ${label}, max-parallel-jobs: ${jobs}, username: ${userInfo().username},
             connection-port: ${machine.port}, host-key: "${machine.hostKeys[0]}"}`;
      }
      await zuul.start("scheduler", "executor", "web");
    });
    afterAll(async () => {
      await zuul?.[Symbol.asyncDispose]();
      await yard?.close();
    });

    test("a job runs on both of its nodes, over their host keys, and they are free again", async () => {
      await zuul.api.enqueue("alpha", "t1", "unit");
      expect(await zuul.result("alpha", "t1", "unit")).toBe("SUCCESS");
      expect(ran()).toEqual(Array(2).fill("alpha refs/tags/t1"));
      await expect
        .poll(async () => (await nodes()).map(({ state }) => state), SOON)
        .toEqual(["ready", "ready", "ready"]);
      expect(await requests()).toEqual([]);
    });

    test("an autohold keeps the node of a job that failed, until it is deleted in Zuul", async () => {
      await zuul.api.hold("alpha", "broken", "ann: kernel crash", 3_600);
      await zuul.api.enqueue("alpha", "t2", "broken");
      expect(await zuul.result("alpha", "t2", "broken")).toBe("FAILURE");
      await expect
        .poll(async () => (await nodes()).filter(({ state }) => state === "hold"), SOON)
        .toHaveLength(1);
      const [held] = (await nodes()).filter(({ state }) => state === "hold");
      expect(held).toMatchObject({ comment: "ann: kernel crash", hold_job: "t1 localhost/alpha broken .*" });
      const [hold] = await zuul.api.holds();
      expect(hold).toMatchObject({ current_count: 1, nodes: [{ nodes: [held!.id] }] });
      await zuul.api.call("DELETE", `/tenant/t1/autohold/${hold!.id}`);
      await expect.poll(async () => (await nodes()).some(({ id }) => id === held!.id), SOON).toBe(false);
    });

    test("what waits is served by precedence, then by its place in its project; what is dequeued is not", async () => {
      const before = ran().length;
      await zuul.api.enqueue("alpha", "t3", "slow");
      await expect
        .poll(async () => (await nodes()).find(({ label }) => label.includes("narrow"))?.state, SOON)
        .toBe("in-use");
      for (const [project, tag, pipeline] of [
        ["alpha", "t4", "narrow"],
        ["alpha", "t5", "narrow"],
        ["beta", "t6", "narrow"],
        ["beta", "t7", "urgent"],
        ["beta", "t8", "narrow"],
      ] as const)
        await zuul.api.enqueue(project, tag, pipeline);
      await expect.poll(async () => (await requests()).length, SOON).toBe(5);
      await zuul.api.dequeue("alpha", "t4", "narrow");
      await expect.poll(async () => (await requests()).length, SOON).toBe(4);
      writeFileSync(file("go"), "");
      await expect.poll(() => ran().length - before, SOON).toBe(4);
      const order = ran()
        .slice(before)
        .map((line) => line.split("/").at(-1));
      // t5 became the first of its project when t4 left, before that of beta, which is younger.
      expect(order).toEqual(["t7", "t5", "t6", "t8"]);
      expect(await zuul.result("alpha", "t3", "slow")).toBe("SUCCESS");
    });

    if (store === "embedded")
      test("its tree moves to a ZooKeeper while a job runs and another waits, and both run once", async () => {
        const before = ran().length;
        rmSync(file("go"));
        await zuul.api.enqueue("alpha", "t9", "slow");
        await expect
          .poll(async () => (await nodes()).find(({ label }) => label.includes("narrow"))?.state, SOON)
          .toBe("in-use");
        await zuul.api.enqueue("beta", "t10", "narrow");
        await expect.poll(async () => (await requests()).length, SOON).toBe(1);
        await yard.move();
        writeFileSync(file("go"), "");
        expect(await zuul.result("alpha", "t9", "slow")).toBe("SUCCESS");
        expect(await zuul.result("beta", "t10", "narrow")).toBe("SUCCESS");
        expect(ran().slice(before)).toEqual(["beta refs/tags/t10"]);
      });
  },
);
