import type { NodeUse } from "@nodeyard/driver";
import { SlotSlivers } from "@nodeyard/driver-metastatic";
import { shownMachine } from "@nodeyard/driver-sliver/shown";
import { paths } from "@nodeyard/model";
import { seededRandom } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import type { Json } from "../rules/world.ts";
import { ISOLATED, KEY, SliverLab } from "./sliver-lab.ts";

const CAP = 1000;
const LENDS = { lend: "idle", sliver: { ...ISOLATED.sliver, "cpu-guarantee": 300, "cpu-cap": CAP } };

/** What a free place keeps, and what an idle sliver does: its guarantee. */
const [FREE_KEEPS, IDLE_KEEPS] = [10, 300];

class LendingLab extends SliverLab {
  /** Slivers that were seen handed out with less than what is theirs, and machines that gave more than they have. */
  readonly wrong = new Set<string>();
  slots = 2;

  lender(name: string, minReady = 0, label: Json = {}) {
    const labels = new Map([["slice", { name: "slice", minReady, maxReadyAgeMs: Number.POSITIVE_INFINITY }]]);
    return this.begin(name, { ...LENDS, ...label }, { labels });
  }

  /** CPU caps that are in the kernel of the one machine, by sliver. */
  get caps(): Record<string, number> {
    return Object.fromEntries(
      this.machines.flatMap(({ machine }) =>
        [...machine.made.values()].map(({ config, applied }) => [
          config.name,
          applied?.effective.cpuCap ?? 0,
        ]),
      ),
    );
  }

  get machines() {
    return [...this.hosts.values()];
  }

  /** Of the one machine's document. */
  async version(): Promise<number> {
    return (await this.settle(this.machines[0]!.client.document(new AbortController().signal))).version;
  }

  /** Ready and nobody's. */
  async idle(): Promise<Json & { id: string }> {
    const free = () =>
      this.ends().find(({ state, allocated_to }) => state === "ready" && allocated_to === null);
    return this.until("there is a node that is ready and nobody's", free);
  }

  look(): void {
    for (const { machine } of this.machines) {
      const caps = [...machine.made.values()].map(({ applied }) => applied?.effective.cpuCap ?? 0);
      const sum = caps.reduce((total, cap) => total + cap, 0);
      if (sum > this.slots * CAP) this.wrong.add(`together ${caps}`);
    }
    const { caps } = this;
    for (const { id, state, allocated_to } of this.ends()) {
      const delivered = this.request(allocated_to as string);
      if (state !== "ready" || delivered?.state !== "fulfilled" || delivered.requestor !== "test") continue;
      if ((caps[`n${id}`] ?? 0) < CAP) this.wrong.add(`${id} was handed out with ${caps[`n${id}`]}`);
    }
  }

  override until<T>(what: string, look: () => T | undefined | false, limitMs?: number): Promise<T> {
    const watched = () => {
      this.look();
      return look();
    };
    return super.until(what, watched, limitMs);
  }

  capOf(name: string, cap: number): Promise<true> {
    return this.until(
      `${name} has ${cap} (${JSON.stringify(this.caps)})`,
      () => this.caps[name] === cap || undefined,
    );
  }
}

describe("idle slots lend, allocation recalls", () => {
  test("a free slot lends its caps to the busy one, and has them back before its own sliver starts", async () => {
    const lab = new LendingLab();
    await lab.lender("a");
    const one = await lab.get();
    await lab.capOf(`n${one.id}`, 2 * CAP - FREE_KEEPS);
    const began: number[] = [];
    lab.machines[0]!.machine.disturb = (step) => {
      if (step === "create") began.push(lab.caps[`n${one.id}`]!);
    };
    const two = await lab.get();
    expect(began, "what the first had when the second was begun").toEqual([CAP]);
    expect(lab.caps).toEqual({ [`n${one.id}`]: CAP, [`n${two.id}`]: CAP });
    await lab.giveBack(two);
    await lab.capOf(`n${one.id}`, 2 * CAP - FREE_KEEPS);
    await lab.giveBack(one);
    await lab.until("the machine is given back", () => lab.backings().length === 0);
    const signal = new AbortController().signal;
    expect((await lab.settle(lab.machines[0]!.client.document(signal))).slivers).toEqual([]);
    expect([...lab.wrong]).toEqual([]);
  });

  test("a free ready node lends down to its guarantee, and is whole before it is handed out", async () => {
    const lab = new LendingLab();
    await lab.lender("a", 1);
    const first = await lab.idle();
    const busy = await lab.get();
    expect(busy.id, "the ready one was given to the first who asked").toBe(first.id);
    const idle = await lab.idle();
    await lab.capOf(`n${idle.id}`, IDLE_KEEPS);
    expect(lab.caps[`n${busy.id}`]).toBe(2 * CAP - IDLE_KEEPS);
    const shown = async () => {
      const report = await lab.settle(lab.machines[0]!.client.status(new AbortController().signal));
      return shownMachine(report).slivers.map(({ node, use, settled, effective, loans }) => ({
        node,
        use,
        settled,
        cap: effective.cpuCap,
        lends: loans.map(({ to, amount, refused }) => [to, amount, refused]),
      }));
    };
    expect(await shown()).toEqual([
      { node: busy.id, use: "busy", settled: true, cap: 2 * CAP - IDLE_KEEPS, lends: [] },
      {
        node: idle.id,
        use: "idle",
        settled: true,
        cap: IDLE_KEEPS,
        lends: [[`n${busy.id}`, CAP - IDLE_KEEPS, null]],
      },
    ]);
    const next = await lab.get();
    expect(next.id).toBe(idle.id);
    expect(lab.caps).toEqual({ [`n${busy.id}`]: CAP, [`n${idle.id}`]: CAP });
    expect([...lab.wrong]).toEqual([]);
  });

  test("without it nothing is lent, and no document says anything of it", async () => {
    const lab = new LendingLab();
    await lab.lender("a", 1, { lend: "none" });
    const busy = await lab.get();
    await lab.run(300_000);
    expect(Object.values(lab.caps)).toEqual([CAP, CAP]);
    const signal = new AbortController().signal;
    const { loans, slivers } = await lab.settle(lab.machines[0]!.client.document(signal));
    expect(loans).toEqual({});
    expect(slivers.flatMap(({ tags }) => Object.keys(tags))).not.toContain("use");
    expect(slivers.map(({ name }) => name)).toContain(`n${busy.id}`);
  });

  test("a machine on which nothing changes is not written to", async () => {
    const lab = new LendingLab();
    await lab.lender("a", 1);
    await lab.get();
    const idle = await lab.idle();
    await lab.capOf(`n${idle.id}`, IDLE_KEEPS);
    const before = await lab.version();
    await lab.run(600_000);
    expect(await lab.version()).toBe(before);
  });

  test("what several need back at once is one document", async () => {
    const lab = new LendingLab();
    lab.slots = 8;
    await lab.lender("a", 6, { "max-parallel-jobs": 8, sliver: { ...LENDS.sliver, "memory-guarantee": 64 } });
    const ready = () =>
      lab.ends().filter(({ state, allocated_to }) => state === "ready" && allocated_to === null).length;
    await lab.until("six are ready", () => ready() === 6);
    const quiet = await lab.version();
    await lab.run(2_000);
    expect(await lab.version()).toBe(quiet);
    const machine = lab.machines[0]!;
    // As by SSH: what comes while a document is on its way goes with the next.
    machine.latencyMs = 40;
    let delivered = 0;
    machine.fate = (method) => {
      if (method === "Deliver") delivered += 1;
      return "answered";
    };
    const asked = await lab.slice({ node_types: Array.from({ length: 6 }, () => "slice") });
    await lab.fulfilled(asked);
    expect(delivered, "six recalls, and what min-ready begins meanwhile").toBeLessThanOrEqual(3);
    expect([...lab.wrong]).toEqual([]);
    const { nodes } = lab.request(asked) as { nodes: string[] };
    for (const id of nodes) expect(lab.caps[`n${id}`]).toBeGreaterThanOrEqual(CAP);
  });

  test("a borrower that does not give back: the node is not handed out, and the request does not hang", async () => {
    const lab = new LendingLab();
    await lab.lender("a", 1);
    const busy = await lab.get();
    const idle = await lab.idle();
    await lab.capOf(`n${idle.id}`, IDLE_KEEPS);
    const { machine } = lab.machines[0]!;
    let stuck = true;
    machine.disturb = async (step, { index }) => {
      if (stuck && step === "configure" && machine.made.get(index)?.config.name === `n${busy.id}`)
        throw new Error("the kernel does not take it");
    };
    const asked = await lab.slice();
    await lab.until(
      "the node is taken out",
      () => lab.node(idle.id)?.state === "deleting" || lab.node(idle.id) === undefined,
    );
    expect(lab.request(asked)?.state).not.toBe("fulfilled");
    stuck = false;
    await lab.fulfilled(asked, 600_000);
    expect([...lab.wrong]).toEqual([]);
  });

  test("a machine that does not answer: the node is not handed out, within a bound", async () => {
    const lab = new LendingLab();
    await lab.lender("a", 1);
    await lab.get();
    const idle = await lab.idle();
    await lab.capOf(`n${idle.id}`, IDLE_KEEPS);
    const machine = lab.machines[0]!;
    machine.kill();
    const asked = await lab.slice();
    await lab.until("the node is taken out", () => lab.node(idle.id)?.state !== "ready", 45_000);
    await machine.start();
    await lab.fulfilled(asked, 900_000);
    expect([...lab.wrong]).toEqual([]);
  });

  test("a node that its request did not take lends again; one that is locked does not", async () => {
    const lab = new LendingLab();
    await lab.lender("a", 1);
    const busy = await lab.get();
    const idle = await lab.idle();
    await lab.capOf(`n${idle.id}`, IDLE_KEEPS);
    // Handed out, and its request went before anyone used it.
    const again = await lab.get();
    expect(again.id).toBe(idle.id);
    await lab.settle(lab.other.delete(paths.request(again.allocated_to as string)));
    await lab.until("it is nobody's", () => lab.node(again.id)?.allocated_to === null);
    await lab.until("it lends", () => lab.caps[`n${again.id}`] === IDLE_KEEPS, 400_000);
    // An operator puts a ready node on hold, past any launcher.
    await lab.put(paths.node(again.id), { ...lab.node(again.id), state: "hold" });
    await lab.until("it has its own", () => lab.caps[`n${again.id}`] === CAP, 400_000);
    expect(lab.caps[`n${busy.id}`]).toBe(CAP);
  });

  test("where it is switched off what was lent goes back", async () => {
    const lab = new LendingLab();
    const member = await lab.lender("a", 1);
    const busy = await lab.get();
    const idle = await lab.idle();
    await lab.capOf(`n${idle.id}`, IDLE_KEEPS);
    member.tree.crash();
    await lab.lender("b", 1, { lend: "none" });
    await lab.until("all have their own", () => lab.caps[`n${idle.id}`] === CAP, 400_000);
    await lab.until("and no more", () => lab.caps[`n${busy.id}`] === CAP, 400_000);
  });

  test("a node that was handed out during a sweep stays busy, whatever the sweep saw", async () => {
    const lab = new SliverLab();
    const { access, clock } = lab;
    const slivers = new SlotSlivers({
      access,
      installation: "i",
      provider: "p",
      clock,
      random: seededRandom(1),
      noteCaches: () => {},
    });
    const rspec = { cpuCap: CAP, cpuGuarantee: 300 };
    const want = {
      rspec,
      image: null,
      initscript: "",
      nesting: false,
      devices: [],
      caches: { folders: [], rules: [] },
      authorizedKeys: [KEY],
      lends: true,
    };
    const lending = { places: 2, rspec };
    const at = { id: "0000000001", host: "10.0.0.1", port: 22, hostKeys: [], epoch: 1, lending };
    const { signal } = new AbortController();
    await lab.settle(lab.hostAt(at.host).started);
    for (const node of ["0000000002", "0000000003"]) await lab.settle(slivers.add(at, node, want, signal));
    const uses = new Map<string, NodeUse>([
      ["0000000002", "used"],
      ["0000000003", "unused"],
    ]);
    const seen = async () => uses;
    await lab.settle(slivers.sweep(at, seen, signal));
    const cap = () => {
      const made = [...lab.hostAt(at.host).machine.made.values()];
      return made.find(({ config }) => config.name === "n0000000003")?.applied?.effective.cpuCap;
    };
    await lab.until("it lends", () => cap() === IDLE_KEEPS);
    const between = async () => {
      await slivers.recall(at, "0000000003", true, { signal, externalId: null });
      return uses;
    };
    await lab.settle(slivers.sweep(at, between, signal));
    await lab.run(5_000);
    expect(cap()).toBe(CAP);
    await lab.settle(slivers.sweep(at, seen, signal));
    await lab.until("nobody took it: it lends again", () => cap() === IDLE_KEEPS);
  });

  test("dying launchers and lost answers: no node is handed out with less than its own amounts, and in the end slivers are those of slots", async () => {
    let served = 0;
    for (let seed = 1; seed <= 8; seed++) {
      const lab = new LendingLab();
      const random = seededRandom(seed);
      const fates = ["answered", "answered", "answered", "answer lost", "lost"] as const;
      let stormy = true;
      let member = await lab.lender("m0", 1);
      const asked: string[] = [];
      for (let round = 1; round <= 4; round++) {
        asked.push(await lab.slice());
        for (const host of lab.machines)
          host.fate = () => (stormy ? fates[Math.floor(random.float() * fates.length)]! : "answered");
        for (let left = Math.floor(random.float() * 4_000); left > 0; left -= 50) {
          await lab.run(50);
          lab.look();
        }
        // It dies between any two of its calls; another one begins while the session of the first stands.
        member.tree.crash();
        member = await lab.lender(`m${round}`, 1);
        if (random.float() >= 0.5) continue;
        const host = lab.machines[0];
        host?.kill();
        await host?.start();
      }
      stormy = false;
      const ended = () =>
        asked.filter((id) => ["fulfilled", "failed"].includes(lab.request(id)?.state as string));
      await lab.until(
        `seed ${seed}: requests end`,
        () => {
          // There are two places: who is served makes room.
          for (const node of lab.ends()) {
            const request = node.allocated_to as string;
            if (
              node.state !== "ready" ||
              lab.request(request)?.state !== "fulfilled" ||
              !asked.includes(request)
            )
              continue;
            served += 1;
            void lab.other.set(
              paths.node(node.id),
              Buffer.from(JSON.stringify({ ...lab.node(node.id), state: "used" })),
            );
          }
          return ended().length === asked.length;
        },
        900_000,
      );
      expect([...lab.wrong], `seed ${seed}`).toEqual([]);
      const live = () => lab.ends().filter(({ state }) => state === "ready");
      const agree = () => {
        const wanted = live().map(({ id }) => `n${id}`);
        return (
          lab.ends().length === wanted.length &&
          lab.made === wanted.length &&
          lab.running.join() === wanted.sort().join()
        );
      };
      await lab.until(`seed ${seed}: slivers are those of slots (${lab.running})`, agree, 300_000);
      lab.check();
    }
    expect(served).toBeGreaterThan(15);
  });
});
