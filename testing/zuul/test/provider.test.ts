import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Victim } from "../../chaos/victim.ts";
import { patient } from "../../patience.ts";
import { startZooKeeper, type ZooKeeperServer } from "../../zookeeper/index.ts";
import { type ConnectorPlace, startConnector } from "../connector.ts";
import { providerLabels } from "../files.ts";
import { requireZuul } from "../require.ts";
import { ZuulSite } from "../site.ts";
import { makeYard, type Yard } from "../yard.ts";

const SOON = { timeout: patient(90_000), interval: 300 };
interface ListedLease {
  readonly id: string;
  readonly state: string;
  readonly job: { readonly system: string; readonly id: string; readonly name: string } | null;
}

describe.skipIf(requireZuul())(
  "Zuul without Nodepool: jobs on leases, by unmodified launchers of Zuul",
  () => {
    let yard: Yard;
    let zookeeper: ZooKeeperServer;
    let zuul: ZuulSite;
    let place: ConnectorPlace;
    let connector: Victim;
    const file = (name: string) => join(zuul.folder, name);
    const ran = () => (existsSync(file("ran")) ? readFileSync(file("ran"), "utf8").trim().split("\n") : []);
    const leases = async () =>
      (await yard.json<readonly ListedLease[]>("list", "--leases")).filter(
        ({ state }) => state !== "released",
      );
    /** Nothing of a job is left on either side. */
    async function nothingLeft(): Promise<void> {
      await expect.poll(leases, SOON).toEqual([]);
      await expect.poll(() => zuul.api.call("GET", "/tenant/t1/nodes"), SOON).toEqual([]);
    }

    /** Labels and providers of the pool, on the machine of the jobs. */
    function pool(): string {
      const { machine } = zuul;
      const host = (name: string, label: string, jobs: number) =>
        `          - {name: ${name}, labels: ${label}, max-parallel-jobs: ${jobs}, username: ${userInfo().username},
             connection-port: ${machine.port}, host-key: "${machine.hostKeys[0]}"}`;
      return `
labels: [{name: small}, {name: narrow}]
providers:
  - name: lab
    driver: static
    pools:
      - name: main
        nodes:
${host("127.0.0.1", "small", 2)}
${host("localhost", "narrow", 1)}
`;
    }

    beforeAll(async () => {
      [yard, zookeeper] = await Promise.all([makeYard("embedded"), startZooKeeper({ tls: true })]);
      const servers = `localhost:${zookeeper.port}`;
      const note = "echo {{ zuul.project.name }} {{ zuul.ref }} >> {{ zuul_folder }}/ran";
      const until = (name: string) => `until [ -e {{ zuul_folder }}/${name} ]; do sleep 0.2; done; ${note}`;
      zuul = await ZuulSite.make({
        hosts: servers,
        tls: zookeeper.tls!,
        nodepool: false,
        objects: providerLabels("zl-small", "narrow"),
        pipelines: {
          unit: { labels: ["zl-small", "zl-small"], command: note },
          broken: { labels: ["zl-small"], command: "false" },
          slow: { labels: ["narrow"], command: until("go") },
          narrow: { labels: ["narrow"], command: note },
          never: { labels: ["narrow"], command: until("never") },
        },
      });
      await yard.start(pool());
      place = {
        folder: zuul.folder,
        pool: yard.socket,
        servers,
        tls: zookeeper.tls!,
        more: "    labels: {zl-small: small}\n",
      };
      connector = await startConnector(place);
      await zuul.start("scheduler", "executor", "web", "launcher");
    });
    afterAll(async () => {
      await connector?.signal("SIGKILL");
      await zuul?.[Symbol.asyncDispose]();
      await zookeeper?.stop();
      await yard?.close();
    });

    test("a job runs on two leases, over the host keys of their nodes", async () => {
      await zuul.api.enqueue("alpha", "t1", "unit");
      expect(await zuul.result("alpha", "t1", "unit")).toBe("SUCCESS");
      expect(ran()).toEqual(Array(2).fill("alpha refs/tags/t1"));
      await nothingLeft();
    });

    test("an autohold keeps node and lease until it is deleted", async () => {
      await zuul.api.hold("alpha", "broken", "ann: kernel crash", 3_600);
      await zuul.api.enqueue("alpha", "t2", "broken");
      expect(await zuul.result("alpha", "t2", "broken")).toBe("FAILURE");
      const nodes = () =>
        zuul.api.call<readonly { state: string; comment: string }[]>("GET", "/tenant/t1/nodes");
      await expect.poll(async () => (await nodes())[0]?.state, SOON).toBe("hold");
      expect(await leases()).toMatchObject([{ state: "granted", job: { system: "zuul", name: "broken" } }]);
      const [held] = await leases();
      expect(await yard.run("explain", held!.job!.id)).toContain(held!.id);
      const [hold] = await zuul.api.holds();
      await zuul.api.call("DELETE", `/tenant/t1/autohold/${hold!.id}`);
      await nothingLeft();
    });

    test("the connector dies while a job runs and others wait: none is lost, none runs twice", async () => {
      const before = ran().length;
      await zuul.api.enqueue("alpha", "t3", "slow");
      await expect.poll(async () => (await leases()).map(({ state }) => state), SOON).toEqual(["granted"]);
      for (const tag of ["t4", "t5"]) await zuul.api.enqueue("beta", tag, "narrow");
      await expect.poll(async () => (await leases()).length, SOON).toBe(3);
      await zuul.api.dequeue("beta", "t5", "narrow");
      await expect.poll(async () => (await leases()).length, SOON).toBe(2);
      await connector.signal("SIGKILL");
      connector = await startConnector(place);
      writeFileSync(file("go"), "");
      expect(await zuul.result("alpha", "t3", "slow")).toBe("SUCCESS");
      expect(await zuul.result("beta", "t4", "narrow")).toBe("SUCCESS");
      expect(ran().slice(before)).toEqual(["alpha refs/tags/t3", "beta refs/tags/t4"]);
      await nothingLeft();
    });

    test("an executor dies with its job: the node goes back", async () => {
      await zuul.api.enqueue("alpha", "t6", "never");
      type Nodes = readonly { readonly state: string }[];
      await expect
        .poll(async () => (await zuul.api.call<Nodes>("GET", "/tenant/t1/nodes"))[0]?.state, SOON)
        .toBe("in-use");
      await zuul.kill("executor");
      await nothingLeft();
    });
  },
);
