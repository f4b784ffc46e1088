import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { seededRandom } from "@nodeyard/runtime";
import type { SliverSpecInput, SliverVolume } from "@nodeyard/sliver-protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { spec } from "../api/rig.ts";
import { VOLUME } from "./machine/cache-once.ts";
import { RealDaemon } from "./machine/daemon.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";

/** How many effects to die at, before each and as soon as it has begun; or which, as "1-40"; or "all". */
const CUTS = process.env.NODEYARD_SLIVER_CUTS ?? "3";
const SEED = Number(process.env.NODEYARD_SLIVER_SEED ?? 20261122);
const NEVER = 1_000_000;
const PATIENCE_MS = patient(60_000);

describe.skipIf(whyNot() !== undefined)("a manager that is killed between two effects", () => {
  let real: RealMachine;
  let daemon: RealDaemon;
  let reported: string;
  /** Of the sliver: each life is one of its own. */
  let generation = 0;

  beforeAll(async () => {
    real = await realMachine();
    daemon = await RealDaemon.prepare(real, "container");
    reported = join(daemon.rig.folder, "told");
  });
  afterAll(async () => {
    await daemon?.stop();
    await real?.stop();
  });

  const sliver = (more: object = {}, commit: SliverVolume["commit"] = "success"): SliverSpecInput =>
    spec("ada", {
      generation,
      keys: [real.key],
      rspec: { disk: 65_536, memoryCap: 131_072, ...more },
      volumes: [{ ...VOLUME, commit }],
    });
  const until = async (what: string, check: () => Promise<unknown>) => {
    const end = performance.now() + PATIENCE_MS;
    let found = await check();
    while (!found) {
      if (performance.now() > end) throw new Error(`${what}: ${JSON.stringify(await daemon.report())}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
      found = await check();
    }
  };
  const changed = async (amount: number) => {
    const { slivers } = await daemon.report();
    return slivers.some(({ effective, settled }) => settled && effective.pids === amount);
  };

  /** A sliver's life, from the daemon's start to its end. */
  async function life(dieAt: string): Promise<void> {
    const first = join(import.meta.dirname, "machine/die-at.ts");
    await daemon.rig.start([first], { NODEYARD_DIE_AT: dieAt, NODEYARD_DIE_TELL: reported });
    generation++;
    await daemon.deliver(sliver());
    await daemon.running("ada");
    await daemon.deliver(sliver({ pids: 77 }));
    await until("it is changed", () => changed(77));
    await daemon.deliver(sliver({ pids: 77 }, "at-end"));
    await until("it is noted", async () =>
      (await daemon.report()).slivers.some(
        ({ volumes, settled }) => settled && volumes?.[0]?.commit === "at-end",
      ),
    );
    await daemon.deliver();
    await until("it is gone", async () => (await daemon.report()).slivers.length === 0);
    await daemon.rig.end("SIGTERM");
  }

  /** What it died at; undefined: it lived. */
  async function cut(dieAt: string): Promise<string | undefined> {
    rmSync(reported, { force: true });
    try {
      await life(dieAt);
      return undefined;
    } catch (error) {
      if (!existsSync(reported)) throw error;
    }
    const what = readFileSync(reported, "utf8");
    await daemon.rig.end("SIGKILL");
    daemon.rig.errors.length = 0;
    try {
      await daemon.rig.start();
      await daemon.deliver(sliver());
      await daemon.running("ada");
      const { user, address } = (await daemon.report()).slivers[0]!.login!;
      expect(real.ssh(address, "id -un", user)).toBe(`${user}\n`);
      const { caches = [], slivers } = await daemon.report();
      // Of this life or of one before, and the sliver has its copy.
      expect([caches.length <= 1, slivers[0]?.volumes?.length]).toEqual([true, 1]);
      for (const { id } of caches)
        await daemon.rig.launcher.call("ChangeCache", [id, "delete"], AbortSignal.timeout(PATIENCE_MS));
      await daemon.deliver();
      await until("nothing is left", async () => (await real.leftovers()).length === 0);
    } catch (cause) {
      const said = daemon.rig.errors.join("");
      const left = (await real.leftovers()).join("\n");
      throw new Error(`killed at ${dieAt} (${what}): ${(cause as Error).message}\n${said}\n${left}`, {
        cause,
      });
    } finally {
      await daemon.rig.end("SIGTERM");
    }
    return what;
  }

  test(`finds and ends all of it after its restart: ${CUTS} cuts, seed ${SEED}`, {
    timeout: patient(3_600_000),
  }, async () => {
    await life(String(NEVER));
    const effects = Number(readFileSync(`${reported}.count`, "utf8"));
    const random = seededRandom(SEED);
    const [, from, to] = /^(\d+)-(\d+)$/.exec(CUTS === "all" ? `1-${effects}` : CUTS) ?? [];
    const each =
      from === undefined
        ? Array.from({ length: Number(CUTS) }, () => 1 + Math.floor(random.float() * effects))
        : Array.from({ length: 1 + Number(to) - Number(from) }, (_, at) => Number(from) + at);
    const failures: string[] = [];
    let died = 0;
    for (const dieAt of each.flatMap((at) => [`${at}`, `${at}+`])) {
      try {
        const what = await cut(dieAt);
        if (what !== undefined) died++;
        if (from !== undefined) console.error(`${dieAt} of ${effects}: ${what ?? "it lived"}`);
      } catch (error) {
        console.error((error as Error).message);
        failures.push((error as Error).message);
        await real.clear();
      }
    }
    expect(failures).toEqual([]);
    // Where much is done at once, what comes last comes earlier at times: then it lives.
    expect(died).toBeGreaterThan(each.length);
  });
});
