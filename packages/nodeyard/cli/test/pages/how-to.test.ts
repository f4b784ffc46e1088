import { type ChildProcess, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import type { Step } from "../../../../../testing/pages/steps.ts";
import { patient } from "../../../../../testing/patience.ts";
import { requirePromtool } from "../../../../../testing/prometheus/index.ts";
import {
  freePort,
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../../testing/zookeeper/index.ts";
import { fakeConfig, Site } from "../nodeyard.ts";
import { follow, indentedIn, inFolder, onZooKeeper, PAGES, text } from "./guide.ts";

/** Followed where what they need is: in containers, in the suite of LXD, and with programs of others (testing/connect/real/pages.test.ts). */
const ELSEWHERE = ["install.md", "one-big-machine-with-lxd.md", "serve-boskos.md", "serve-tmt.md"];

test("no page with commands to follow is left out", () => {
  const pages = readdirSync(PAGES).filter((name) => /^ *```sh run\b/m.test(text(name)));
  const tests = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".test.ts"));
  const source = tests.map((name) => readFileSync(join(import.meta.dirname, name), "utf8")).join("\n");
  const followed = source.matchAll(/^ *test.*\("([a-z-]+\.md)"/gm);
  expect(pages.sort()).toEqual([...ELSEWHERE, ...[...followed].map(([, name]) => name!)].sort());
});

describe("what operators paste does what the page says:", () => {
  test.skipIf(requireZooKeeper())("tls-for-zookeeper.md", () =>
    inFolder(async (folder) => {
      const page = "tls-for-zookeeper.md";
      const port = await freePort();
      const here = (text: string) =>
        text
          .replaceAll(/\/etc\/(zookeeper|nodeyard)\/tls\//g, `${folder}/`)
          .replaceAll("zk1.example.org\n", "127.0.0.1\n")
          .replaceAll("2281", String(port));
      const lines = here(indentedIn(page, "The ZooKeeper servers")).matchAll(/^([\w.]+)=(.*)$/gm);
      const config = Object.fromEntries([...lines].map(([, key, value]) => [key!, value!]));
      expect(config).toMatchObject({ secureClientPort: String(port), "ssl.clientAuth": "need" });
      const launcher = parse(here(indentedIn(page, "The launcher"))) as object;
      writeFileSync(join(folder, "nodepool.yaml"), stringify({ ...launcher, ...parse(fakeConfig()) }));
      let server: ZooKeeperServer | undefined;
      let site: Site | undefined;
      const restart = async () => {
        await site?.close();
        await server?.stop();
        server = await startZooKeeper({ config });
        site = new Site("");
        const running = site.start("-c", join(folder, "nodepool.yaml"), "launcher", "--no-webapp");
        await running.printed("the launcher runs");
      };
      const names = {
        "zk1.example.org:2281": `127.0.0.1:${port}`,
        "/etc/nodeyard/nodepool.yaml": "nodepool.yaml",
      };
      try {
        await follow(page, names, folder, async ({ commands }) => {
          // Servers and clients are restarted with what the step before made.
          if (commands.includes("s_client") || commands.includes("CA=ca-new")) await restart();
        });
        await restart();
      } finally {
        await site?.close();
        await server?.stop();
      }
    }),
  );

  test.skipIf(requireZooKeeper() ?? requirePromtool())("watch-with-prometheus.md", () =>
    inFolder(async (folder) => {
      const page = "watch-with-prometheus.md";
      const [web, builder, prometheus] = [await freePort(), await freePort(), await freePort()];
      const statsd = createSocket("udp4");
      const reported: string[] = [];
      statsd.on("message", (datagram) => void reported.push(datagram.toString()));
      await new Promise<void>((resolve) => statsd.bind(0, "127.0.0.1", resolve));
      const server = await startZooKeeper();
      const site = new Site("");
      let scraper: ChildProcess | undefined;
      const config = `images-dir: ${folder}\n${onZooKeeper(server, await freePort())}`;
      writeFileSync(join(folder, "nodepool.yaml"), config);
      const names = {
        "/var/lib/nodeyard/": `${site.state}/`,
        "/etc/nodeyard/": "",
        "-c FILE": "-c nodepool.yaml",
        "127.0.0.1:8005": `127.0.0.1:${web}`,
        "127.0.0.1:8006": `127.0.0.1:${builder}`,
        // Another launcher beside the two that run.
        "stats.example STATSD_PORT=8125 nodeyard": `127.0.0.1 STATSD_PORT=${statsd.address().port} nodeyard --state statsd`,
      };
      try {
        const before = async ({ commands }: Step) => {
          if (commands.includes("--unix-socket")) {
            const file = join(folder, "nodepool.yaml");
            const running = site.start("-c", file, "launcher", "--webapp", "127.0.0.1:0");
            await running.printed("the launcher runs");
          } else if (commands.includes("nodeyard -c nodepool.yaml builder")) {
            // A real Prometheus reads the launcher that the page has just started, by the page's own lines.
            const [, lines] = /^(scrape_configs:.*?targets: )/s.exec(indentedIn(page, "Prometheus"))!;
            const config = lines!.replace("/etc/prometheus/nodeyard-token", join(folder, "webapp-token"));
            scraper = startPrometheus(folder, `${config}["127.0.0.1:${web}"]`, prometheus);
            await expect.poll(() => scraped(prometheus), { timeout: patient(60_000) }).toBe("1");
          }
        };
        await follow(page, names, folder, before, () =>
          expect.poll(() => reported.join("\n"), { timeout: patient(60_000) }).toContain("nodepool."),
        );
      } finally {
        scraper?.kill("SIGKILL");
        await site.close();
        await server.stop();
        statsd.close();
      }
    }),
  );

  test.skipIf(requireZooKeeper())("upgrade-and-go-back.md", () =>
    inFolder(async (folder) => {
      const port = await freePort();
      const server = await startZooKeeper();
      const site = new Site("");
      writeFileSync(join(folder, "nodepool.yaml"), onZooKeeper(server, port));
      const names = { "launcher1:8005": `127.0.0.1:${port}`, "request LABEL": "request small" };
      try {
        await site.start("-c", join(folder, "nodepool.yaml"), "launcher").printed("the launcher runs");
        await follow("upgrade-and-go-back.md", names, folder);
      } finally {
        await site.close();
        await server.stop();
      }
    }),
  );

  test("choose-by-price.md", () => inFolder((folder) => follow("choose-by-price.md", {}, folder)));

  test("use-the-api.md", () =>
    inFolder(async (folder) => {
      const port = await freePort();
      // Where the page's user has it, and where commands look for it.
      const state = join(folder, ".nobody");
      const site = new Site(fakeConfig({ labels: ["ubuntu-noble"] }));
      const names = { "127.0.0.1:8005": `127.0.0.1:${port}`, "~/.local/state/nodeyard/": `${state}/` };
      try {
        const up = site.start("--state", state, "-c", site.config, "up", "--webapp", `127.0.0.1:${port}`);
        await up.printed("Nodeyard is up");
        await follow("use-the-api.md", names, folder);
      } finally {
        await site.close();
      }
    }));
});

function startPrometheus(folder: string, config: string, port: number): ChildProcess {
  const file = join(folder, "prometheus.yml");
  writeFileSync(file, `global: {scrape_interval: 1s}\n${config}\n`);
  const words = [`--config.file=${file}`, `--storage.tsdb.path=${join(folder, "prometheus")}`];
  return spawn("prometheus", [...words, `--web.listen-address=127.0.0.1:${port}`], { stdio: "ignore" });
}

/** What Prometheus has of the launcher's metric. */
async function scraped(port: number): Promise<string | undefined> {
  const query = encodeURIComponent('nodeyard_tree_connected{job="nodeyard"}');
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${query}`).catch(() => undefined);
  const body = (await answer?.json()) as { data?: { result: { value: [number, string] }[] } } | undefined;
  return body?.data?.result[0]?.value[1];
}
