import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyNot } from "../../../../../testing/slivers/index.ts";
import type { Running } from "../../../cli/test/nodeyard.ts";
import { ForeignSite, type Slot } from "./foreign-site.ts";

/** Per mille of one CPU: little, so that a busy machine gives it all the same. */
const [CAP, GUARANTEE] = [100, 30];
/** Milliseconds between two looks at the kernel's values. */
const LOOK = 2;
/** Milliseconds over which CPU time is counted. */
const MEASURED = 3_000;

describe.skipIf(whyNot() !== undefined)("idle slots lend, in the kernel", () => {
  const site = new ForeignSite();
  let up: Running;

  beforeAll(async () => {
    await site.start();
    await site.prepare();
    const installed = await site.install("--sliverd-config", site.sliverdConfig, "--node", "host-1");
    expect(installed.code, installed.err).toBe(0);
    up = await site.up(configuration(site));
  });

  afterAll(async () => {
    await up?.kill("SIGTERM");
    await site.stop();
  });

  const idle = () =>
    site.until("a slot is ready and nobody's", async () => {
      const nodes = await site.json<Slot[]>("list", "--detail");
      return nodes.find(
        ({ provider, state, allocated_to }) =>
          provider === "slices" && state === "ready" && allocated_to === null,
      );
    });

  /** Asks for a slot, and returns it with its lease. */
  const get = async () => {
    const { lease, nodes } = await site.json<{ lease: string; nodes: Slot[] }>("request", "slice", "--wait");
    return { lease, slot: nodes[0]! };
  };

  test("a busy slot uses what an idle one may; allocated, that has its own back before it is delivered", async () => {
    const first = await idle();
    const busy = await get();
    expect(busy.slot.id).toBe(first.id);
    const second = await idle();
    // The lender gives first: until the borrower has it, what is lent is nobody's.
    await site.until("the busy one has it", () => capOf(site, busy.slot) === 2 * CAP - GUARANTEE);
    expect(capOf(site, second)).toBe(GUARANTEE);
    const reported = ["sliverd", "status", "root@foreign", "--ssh-config", site.sshConfig];
    expect(await site.json(...reported)).toMatchObject([
      { node: busy.slot.id, use: "busy", caps: { cpuCap: { own: CAP, inForce: 2 * CAP - GUARANTEE } } },
      {
        node: second.id,
        use: "idle",
        lends: [{ resource: "cpuCap", amount: CAP - GUARANTEE, refusal: null }],
      },
    ]);

    const load = spawn("ssh", [...site.loginWords(busy.slot), "while :; do :; done"], { stdio: "ignore" });
    try {
      // The login that is the load may take long, and what else the machine does takes from it.
      let lent = 0;
      const borrowed = async () => (lent = await used(site, busy.slot));
      await expect.poll(borrowed, { message: "beyond its own cap" }).toBeGreaterThan(CAP * 1.3);
      expect(lent, "and not beyond what it was lent").toBeLessThan((2 * CAP - GUARANTEE) * 1.1);

      // Looked at all the time: from the first value that changes to the last.
      const seen: { at: number; busy: number; second: number }[] = [];
      const look = setInterval(() => {
        seen.push({ at: performance.now(), busy: capOf(site, busy.slot), second: capOf(site, second) });
      }, LOOK);
      const next = await get();
      clearInterval(look);
      // The third slot lends from now on, or is being made: nothing below what is anybody's own.
      expect(next.slot.id).toBe(second.id);
      expect(capOf(site, second)).toBeGreaterThanOrEqual(CAP);
      const whole = seen.findIndex(({ second: cap }) => cap >= CAP);
      expect(whole).toBeGreaterThan(0);
      expect(seen[whole]!.busy, "who borrowed gave back first").toBeLessThanOrEqual(CAP);
      const began = seen.findIndex(({ busy: cap }) => cap < 2 * CAP - GUARANTEE);
      expect(seen.filter(({ busy: one, second: two }) => one + two > 2 * CAP)).toEqual([]);
      const reported = deliveredAt(site);
      console.log(
        `recalled: the kernel ${Math.round(performance.timeOrigin + seen[whole]!.at - reported)} ms after the document came, ` +
          `the lender ${Math.round(seen[whole]!.at - seen[began]!.at)} ms after the borrower; lent: ${Math.round(lent)} of ${CAP}`,
      );

      expect(await used(site, busy.slot), "back at its own cap").toBeLessThan(CAP * 1.1);
      for (const { lease } of [busy, next]) expect((await site.nodeyard("release", lease)).code).toBe(0);
    } finally {
      load.kill();
    }
  });

  /** When the last document came that began to change the kernel; milliseconds since the Unix epoch. */
  function deliveredAt({ machine }: ForeignSite): number {
    const lines = machine.run("grep", '"Deliver"', "/var/lib/nodeyard-sliverd/audit.log").trim().split("\n");
    return Math.max(...lines.map((line) => Date.parse((JSON.parse(line) as { at: string }).at)));
  }
});

/** CPU groups of the other machine's slivers are below one of ours. */
function groupOf(site: ForeignSite, slot: Slot): string {
  const index = Number(String(slot.username).replace("ny-", ""));
  const parent = site.machine.groups("cpu");
  const name = readdirSync(join(parent, "nodeyard-slivers")).find((one) => one.startsWith(`ny-${index}.`));
  if (name === undefined) throw new Error(`sliver ${index} has no group`);
  return join(parent, "nodeyard-slivers", name);
}

/** Its cap in the kernel, per mille of one CPU. */
function capOf(site: ForeignSite, slot: Slot): number {
  const group = groupOf(site, slot);
  const [v1, v2] = [() => read(group, "cpu.cfs_quota_us"), () => read(group, "cpu.max")];
  const quota = site.machine.hasV2 ? v2().split(" ")[0] : v1();
  return Math.round(Number(quota) / 100);
}

/** CPU that it uses now, per mille of one. */
async function used(site: ForeignSite, slot: Slot): Promise<number> {
  const [before, began] = [cpuTime(site, slot), performance.now()];
  await pause(MEASURED);
  return ((cpuTime(site, slot) - before) / (performance.now() - began)) * 1000;
}

/** Milliseconds. */
function cpuTime(site: ForeignSite, slot: Slot): number {
  const group = groupOf(site, slot);
  if (site.machine.hasV2) return Number(/usage_usec (\d+)/.exec(read(group, "cpu.stat"))![1]) / 1000;
  return (
    Number(read(group.replace(site.machine.groups("cpu"), site.machine.groups("cpuacct")), "cpuacct.usage")) /
    1e6
  );
}

function read(group: string, file: string): string {
  return readFileSync(join(group, file), "utf8").trim();
}

function configuration({ machine, userKey }: ForeignSite): string {
  return `
labels:
  - name: host
  - name: slice
    min-ready: 1
providers:
  - name: lab
    driver: static
    pools:
      - name: main
        nodes:
          - name: ${machine.address}
            labels: [host]
            username: root
            host-key: ${machine.hostKey}
  - name: slices
    driver: metastatic
    pools:
      - name: main
        labels:
          - name: slice
            backing-label: host
            max-parallel-jobs: 2
            grace-time: 1
            isolation: sliver
            lend: idle
            sliver:
              cpu-guarantee: ${GUARANTEE}
              cpu-cap: ${CAP}
              memory-guarantee: 64
              memory: 256
              pids: 60
              disk: 128
              authorized-keys: ["${userKey}"]
`;
}
