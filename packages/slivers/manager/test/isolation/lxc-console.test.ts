import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import type { SliverConfig } from "../../src/core/plan.ts";
import type { BackEnd } from "../../src/isolation/contract.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { addressOf, bringUp, configsOf, inSliver } from "./machine/slivers.ts";

/** Of each of its two files. */
const MOST = 128 * 1024;

describe.skipIf(whyNot() !== undefined)("the console of a sliver", () => {
  const { signal } = new AbortController();
  let real: RealMachine;
  let backEnd: BackEnd;
  beforeAll(async () => {
    real = await realMachine();
    backEnd = real.backEnd("container");
  });
  afterAll(() => real?.stop());

  const configOf = (index: number, initscript: string): SliverConfig => ({
    ...configsOf(real.key, { [index]: {} })[0]!,
    initscript,
  });
  const until = (config: SliverConfig, text: string | RegExp) =>
    vi.waitFor(
      async () => {
        const all = await backEnd.console!(config);
        expect(all).toMatch(text);
        return all!;
      },
      { timeout: patient(60_000) },
    );

  test("has each boot and what its start script says, which has its log inside, too", async () => {
    const config = configOf(1, "echo out; echo err >&2");
    await bringUp(backEnd, [config]);
    await until(config, /^out\r\nerr\r$/m);
    expect(await backEnd.console!(config)).toContain("Server listening on");
    expect(await inSliver(real, 1, "cat /run/nodeyard-initscript.log")).toBe("out\nerr");
    await backEnd.stop(config, signal);
    await until(config, /^err\r$/m);
    await backEnd.start(config, signal);
    await until(config, /err\r\n[\s\S]*err\r\n/);
  });

  test("takes two files of 128 KiB of the host however much its root writes, and shows the end", async () => {
    const config = configOf(2, "");
    await bringUp(backEnd, [config]);
    const folder = join(real.folder, "slivers/ny-2.2");
    // Bytes of no text, and what a terminal obeys; then a link in the place of the console.
    real.ssh(
      addressOf(2),
      `head -c 3000000 /dev/urandom >/dev/console; printf '\\033[2J\\377the end\\n' >/dev/console
      rm -f /dev/console; ln -s /etc/passwd /dev/console; true`,
      "root",
    );
    const all = await until(config, "the end");
    expect(all.length).toBeLessThanOrEqual(65_536);
    const files = readdirSync(folder).filter((name) => name.startsWith("console.log"));
    expect(files.sort()).toEqual(["console.log", "console.log.1"]);
    for (const name of files) {
      const { size, mode, uid } = statSync(join(folder, name));
      expect(size).toBeLessThanOrEqual(MOST);
      expect([mode & 0o077, uid]).toEqual([0, 0]);
    }
  });
});
