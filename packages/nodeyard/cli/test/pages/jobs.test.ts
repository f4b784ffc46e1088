import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { requireSshd, type Sshd, startSshd } from "../../../../../testing/sshd/index.ts";
import { fencesOf } from "../../../../../tools/pages/fences.ts";
import { Site } from "../nodeyard.ts";
import { follow, inFolder, text } from "./guide.ts";

const BIN = join(import.meta.dirname, "../../../../../node_modules/.bin");

/** The lines of a page's block that holds `part`. */
function block(page: string, part: string): string {
  const found = fencesOf(text(page)).find(({ lines }) => lines.some((line) => line.includes(part)));
  expect(found, `${page} has a block with ${part}`).toBeDefined();
  return found!.lines.join("\n");
}

describe.skipIf(requireSshd())("pages for users of hosts, on a real SSH server:", () => {
  let sshd: Sshd;
  let site: Site;
  beforeAll(async () => {
    site = new Site("");
    const key = join(site.folder, "key");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    sshd = await startSshd({ authorizedKey: readFileSync(`${key}.pub`, "utf8").trim() });
  });
  afterAll(async () => {
    await site.close();
    await sshd?.stop();
  });

  const host = (more: object) => ({
    name: sshd.host,
    username: userInfo().username,
    "connection-port": sshd.port,
    "host-key": sshd.hostKeys[0],
    ...more,
  });

  test("the script of leases-from-ci.md runs a command on a node, and returns the node when it fails", async () => {
    const pools = [{ name: "main", nodes: [host({ labels: "host" })] }];
    site.write(
      stringify({ labels: [{ name: "host" }], providers: [{ name: "lab", driver: "static", pools }] }),
    );
    await site.up();
    const script = join(site.folder, "on-node");
    // A job's machine has a tree to talk to by its configuration; here it is the state folder's.
    writeFileSync(
      script,
      block("leases-from-ci.md", "# on-node").replace(
        "nodeyard -c nodepool.yaml",
        `nodeyard --state ${site.state}`,
      ),
    );
    const agent = spawn("ssh-agent", ["-D", "-a", join(site.folder, "agent")], { stdio: "ignore" });
    const env = {
      ...process.env,
      PATH: `${BIN}:${process.env.PATH}`,
      SSH_AUTH_SOCK: join(site.folder, "agent"),
    };
    try {
      await expect
        .poll(() => ends("ssh-add", ["-q", join(site.folder, "key")], env))
        .toMatchObject({ code: 0 });
      const { code, out } = await ends("sh", [script, "host", "echo here; exit 7"], env);
      expect([code, out]).toEqual([7, "here\n"]);
      expect(await site.json("list", "--leases")).toEqual([]);
    } finally {
      agent.kill();
    }
  });

  test("the key of a host, as static-hosts.md reads it, is the one that it has", async () => {
    const command = block("static-hosts.md", "ssh-keyscan").replace(
      "board-1.lab.example.org",
      `-p ${sshd.port} ${sshd.host}`,
    );
    const { out } = await ends("sh", ["-c", command], process.env);
    expect(out).toContain(sshd.hostKeys[0]);
  });

  test("metastatic.md", () =>
    inFolder(async (folder) => {
      const [page] = fencesOf(text("metastatic.md")).filter(({ language }) => language === "yaml");
      const config = parse(page!.lines.join("\n"));
      config.providers[0].pools[0].nodes = [host({ labels: ["big-server"] })];
      writeFileSync(join(folder, "slices.yaml"), stringify(config));
      await follow("metastatic.md", {}, folder);
    }));

  test("mixed-sets.md", () =>
    inFolder(async (folder) => {
      const [page] = fencesOf(text("mixed-sets.md")).filter(({ language }) => language === "yaml");
      const config = parse(page!.lines.join("\n"));
      // One server is both hosts: the file may have a host once, by its name.
      const [north, south] = config.providers[1].pools;
      north.nodes = [host({ labels: ["arm-board"] })];
      south.nodes = [host({ labels: ["big-server"], name: "localhost" })];
      writeFileSync(join(folder, "mixed.yaml"), stringify(config));
      await follow("mixed-sets.md", {}, folder);
    }));
});

async function ends(program: string, words: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(program, words, {
    env,
    cwd: env.SSH_AUTH_SOCK?.replace(/\/agent$/, ""),
    stdio: ["ignore", "pipe", "inherit"],
  });
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    out += part;
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out };
}
