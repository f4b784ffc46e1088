import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { paths } from "@nodeyard/model";
import { connect } from "@nodeyard/zookeeper";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import {
  freePort,
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../../testing/zookeeper/index.ts";
import { fakeConfig, Site } from "../nodeyard.ts";
import { follow, inFolder, onZooKeeper } from "./guide.ts";

describe.skipIf(requireZooKeeper())("a launcher that serves Zuul, by its pages:", () => {
  let server: ZooKeeperServer;
  beforeEach(async () => {
    server = await startZooKeeper();
  });
  afterEach(() => server.stop());

  test("debug-a-stuck-request.md", () =>
    inFolder(async (folder) => {
      const page = "debug-a-stuck-request.md";
      const [port, file] = [await freePort(), join(folder, "nodepool.yaml")];
      writeFileSync(
        file,
        onZooKeeper(server, port, ["fake-small", "fake-large"]).replace("max-servers: 5", "max-servers: 3"),
      );
      const site = new Site("");
      const zuul = await connect(`127.0.0.1:${server.port}`);
      /** As Zuul asks; resolves with the request's path. */
      const ask = async (label: string, event: string) => {
        const now = Date.now() / 1000;
        const times = { created_time: now, state_time: now };
        const record = {
          ...{
            ...times,
            state: "requested",
            node_types: [label],
            requestor: "zuul.example.org",
            provider: null,
          },
          ...{
            requestor_data: null,
            relative_priority: 0,
            event_id: event,
            tenant_name: "example",
            declined_by: [],
          },
        };
        await zuul.ensurePath(paths.requests);
        const data = Buffer.from(JSON.stringify(record));
        return (await zuul.create(`${paths.requests}/100-`, data, { sequential: true })).path;
      };
      const state = async (path: string) =>
        JSON.parse((await zuul.get(path)).data.toString()).state as string;
      const until = (path: string, wanted: string) =>
        expect.poll(() => state(path), { timeout: patient(60_000) }).toBe(wanted);
      const address = `127.0.0.1:${port}`;
      try {
        const launcher = site.start("--log-file", join(folder, "launcher.log"), "-c", file, "launcher");
        await expect
          .poll(
            () =>
              fetch(`http://${address}/ready`).then(
                ({ status }) => status,
                () => 0,
              ),
            { timeout: patient(60_000) },
          )
          .toBe(200);
        // Three nodes are all that the pool may have.
        for (const event of ["0", "5bd1e0c2f2a94b7c", "1"])
          await until(await ask("fake-small", event), "fulfilled");
        await ask("fake-large", "c7a9f13e5d0b4e21");
        const names = {
          "nodeyard request-list": "nodeyard -c nodepool.yaml request-list",
          "127.0.0.1:8005": address,
          "10.0.0.1:2181": `127.0.0.1:${server.port}`,
          "100-0000000002": "100-0000000001",
          "0000000002": "0000000001",
        };
        await follow(page, names, folder, async ({ commands }) => {
          if (commands.includes("[e: c7a9f13e5d0b4e21]"))
            await until(await ask("no-such-label", "c7a9f13e5d0b4e21"), "failed");
          if (commands.includes("/ready")) await server.stop();
        });
        await launcher.kill("SIGTERM");
      } finally {
        await zuul.close();
        await site.close();
      }
    }));

  test("follow-a-node.md", () =>
    inFolder(async (folder) => {
      const file = join(folder, "nodepool.yaml");
      writeFileSync(file, onZooKeeper(server, await freePort()));
      const site = new Site("");
      try {
        const words = ["--log-file", join(folder, "launcher.log"), "-c", file, "launcher", "--no-webapp"];
        const launcher = site.start(...words);
        await expect
          .poll(async () => (await site.run("-c", file, "list")).code, { timeout: patient(60_000) })
          .toBe(0);
        const { out } = await site.run("-c", file, "request", "small", "--wait", "--json");
        const [node] = (JSON.parse(out) as { nodes: { id: string }[] }).nodes;
        await launcher.kill("SIGTERM");
        const names = {
          "0000000042": node!.id,
          "provider=cloud": "provider=fake-cloud",
          "/var/log/nodeyard/launcher.log": "second.log",
        };
        await follow("follow-a-node.md", names, folder, undefined, () =>
          expect
            .poll(
              () =>
                existsSync(join(folder, "second.log"))
                  ? readFileSync(join(folder, "second.log"), "utf8")
                  : "",
              { timeout: patient(60_000) },
            )
            .toContain("the launcher runs"),
        );
      } finally {
        await site.close();
      }
    }));

  test("size-and-scale.md", () =>
    inFolder(async (folder) => {
      const [port, file] = [await freePort(), join(folder, "nodepool.yaml")];
      writeFileSync(file, onZooKeeper(server, await freePort()));
      const site = new Site("");
      const names = { "/var/lib/nodeyard-2": "second", "127.0.0.1:8006": `127.0.0.1:${port}` };
      try {
        await site.start("-c", file, "launcher").printed("the launcher runs");
        await follow("size-and-scale.md", names, folder, undefined, async () => {
          const zuul = await connect(`127.0.0.1:${server.port}`);
          await expect
            .poll(async () => (await zuul.children(paths.component("pool"))).children, {
              timeout: patient(60_000),
            })
            .toHaveLength(2);
          await zuul.close();
        });
      } finally {
        await site.close();
      }
    }));
});

test("autohold.md", () =>
  inFolder(async (folder) => {
    // Where the commands of the page look for it.
    const state = join(folder, ".nobody");
    const site = new Site(fakeConfig({ labels: ["small"], minReady: 1 }));
    const json = async <T>(...words: string[]): Promise<T> =>
      JSON.parse((await site.run("--state", state, ...words, "--json")).out) as T;
    try {
      await site.start("--state", state, "-c", site.config, "up").printed("Nodeyard is up");
      const used = await json<{ nodes: { id: string }[] }>("request", "small", "--wait");
      let ready: { id: string }[] = [];
      await expect
        .poll(async () => (ready = await json("list", "--state", "ready")), { timeout: patient(60_000) })
        .toHaveLength(1);
      const [held] = ready;
      await json("hold", held!.id, "--for", "1h", "--comment", "debug by ann");
      const names = { "0000000001": held!.id, "0000000000": used.nodes[0]!.id };
      await follow("autohold.md", names, folder);
    } finally {
      await site.close();
    }
  }));
