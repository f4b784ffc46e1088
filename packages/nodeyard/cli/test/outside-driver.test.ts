import { mkdirSync, readdirSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { patience } from "../../../../testing/patience.ts";
import { Site } from "./nodeyard.ts";

const EXAMPLE = fileURLToPath(new URL("../../../../examples/driver-lab/", import.meta.url));

interface Granted {
  readonly lease: string;
  readonly nodes: readonly {
    readonly id: string;
    readonly interface_ip: string;
    readonly connection_port: number;
  }[];
}

let site: Site;
let folder: string;
beforeEach(() => {
  site = new Site("");
  folder = join(site.folder, "boards");
  site.write(`
labels: [{name: board}]
providers:
  - name: desk
    driver: ${EXAMPLE}src/index.ts
    folder: ${folder}
    max-boards: 4
    pools: [{name: main, labels: [{name: board, greeting: hello}]}]
`);
});
afterEach(async () => {
  const left = boards();
  for (const pid of left) process.kill(pid, "SIGKILL");
  await site.close();
});

/** Every process that was started in a board's folder, entered there or not, and whether the folder still exists or not. */
function boards(): readonly number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && folderOf(pid).startsWith(folder))
    .sort();
}

/** Empty for one that has ended. */
function folderOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}

function greetingOf(host: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    connect(port, host)
      .setEncoding("utf8")
      .on("data", (part) => {
        text += part;
      })
      .on("end", () => resolve(text))
      .on("error", reject);
  });
}

async function until(what: string, look: () => boolean): Promise<void> {
  for (let tries = 0; tries < 6_000 * patience(); tries++) {
    if (look()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`it never happened: ${what}; boards: ${JSON.stringify(boards())}`);
}

describe("a driver from outside, named by its path", () => {
  test("serves a request; its machines outlive a killed launcher and end with the lease", async () => {
    const up = await site.up();
    const granted = await site.json<Granted>("request", "board:2", "--wait");
    const greetings = () =>
      Promise.all(granted.nodes.map((node) => greetingOf(node.interface_ip, node.connection_port)));
    const expected = granted.nodes.map(({ id }) => `np${id}: hello\n`);
    expect(granted.nodes).toHaveLength(2);
    expect(await greetings()).toEqual(expected);

    await up.kill("SIGKILL");
    expect(await greetings()).toEqual(expected);
    const before = boards();
    expect(before).toHaveLength(2);
    await site.up();
    expect(await greetings()).toEqual(expected);
    expect(boards()).toEqual(before);

    expect((await site.run("release", granted.lease)).code).toBe(0);
    await until("no folder is left", () => readdirSync(folder).length === 0);
    await until("no process is left", () => boards().length === 0);
  });

  test("what a killed launcher left half made is served or removed by the next, and nothing foreign is touched", async () => {
    mkdirSync(join(folder, "theirs"), { recursive: true });
    const up = await site.up();
    const asked = await site.run("request", "board:2", "--for", "10m");
    await until("a folder is made", () => readdirSync(folder).length > 1);
    await up.kill("SIGKILL");
    await site.up();
    const lease = asked.out.trim();
    await expect
      .poll(() => site.json<{ id: string; state: string }[]>("list", "--leases"))
      .toMatchObject([{ id: lease, state: "granted" }]);
    await until("as many boards as nodes", () => boards().length === 2 && readdirSync(folder).length === 3);
    expect((await site.run("release", lease)).code).toBe(0);
    await until("only theirs is left", () => readdirSync(folder).join() === "theirs");
    await until("no process is left", () => boards().length === 0);
  });
});
