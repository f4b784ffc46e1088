import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { fakeConfig, Site } from "../../../packages/nodeyard/test/cli/nodeyard.ts";
import { freePort, requireZooKeeper, startZooKeeper, type ZooKeeperServer } from "../../zookeeper/index.ts";
import { Reader } from "../reader.ts";

const PAGES = join(import.meta.dirname, "../../../docs/how-to");
const LIMIT_MS = 600_000;

/** A page of an operator, with its names of hosts, files and ports as this machine has them. */
async function follow(
  name: string,
  names: Readonly<Record<string, string>>,
  folder: string,
  before: Parameters<Reader["fromTopToBottom"]>[0],
): Promise<void> {
  let page = readFileSync(join(PAGES, name), "utf8");
  for (const [theirs, ours] of Object.entries(names)) {
    expect(page, `${name} has the name that is replaced`).toContain(theirs);
    page = page.replaceAll(theirs, ours);
  }
  const reader = await Reader.of(page, folder);
  try {
    await reader.fromTopToBottom(before);
  } finally {
    await reader.close();
  }
}

/** The lines of a page that are indented below a heading, as a file. */
function indentedIn(name: string, heading: string): string {
  const [, section = ""] = readFileSync(join(PAGES, name), "utf8").split(`\n## ${heading}\n`);
  const [part] = section.split("\n## ");
  return part!
    .split("\n")
    .filter((line) => line.startsWith("    "))
    .map((line) => line.slice(4))
    .join("\n");
}

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-how-to-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

describe("what operators paste does what the page says:", { timeout: LIMIT_MS }, () => {
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
        await running.told("the launcher runs");
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
});
