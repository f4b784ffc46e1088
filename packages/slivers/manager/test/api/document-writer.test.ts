import { backoff, deadline, type Random, seededRandom, sleep } from "@nodeyard/runtime";
import {
  DocumentWriter,
  type DocumentWriterOptions,
  SliverClient,
  type SliverSpecInput,
  SliverUnreachableError,
} from "@nodeyard/sliver-protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ApiRig, CONTROL, ROOT, spec } from "./rig.ts";

const never = new AbortController().signal;

/** What the wire does with one call: answers, loses it, or loses the answer; each after some turns of the loop. */
interface Wire {
  readonly random: Random;
  readonly faults: number;
}

class WriterRig extends ApiRig {
  readonly calls: string[] = [];

  client({ random, faults }: Wire): SliverClient {
    const lost = () => random.float() < faults;
    return new SliverClient(async (body) => {
      await this.turns(random);
      if (lost()) throw new SliverUnreachableError("the call was lost");
      this.calls.push(JSON.parse(body).method);
      const answer = await this.handler({ method: "POST", path: "/json", body }, CONTROL);
      await this.turns(random);
      if (lost()) throw new SliverUnreachableError("the answer was lost");
      return answer.body;
    });
  }

  async turns(random: Random): Promise<void> {
    for (let left = Math.floor(random.float() * 8); left > 0; left--) await null;
  }

  writer(more: Partial<DocumentWriterOptions> = {}, wire: Wire = { random: seededRandom(1), faults: 0 }) {
    const { clock } = this;
    return new DocumentWriter({
      client: this.client(wire),
      signer: this.signer,
      node: "node-1",
      writer: "driver:one",
      epoch: 1,
      now: () => clock.now(),
      wait: (attempt, signal) => sleep(clock, backoff(wire.random, attempt, 50, 2_000), signal),
      limit: () => deadline(clock, 600_000, () => new Error("too late")),
      ...more,
    });
  }

  /** Lets time pass until it has settled. */
  async until<T>(work: Promise<T>): Promise<T> {
    let open = true;
    const done = work.finally(() => {
      open = false;
    });
    done.catch(() => undefined);
    for (let turn = 0; open && turn < 10_000; turn++) await this.clock.advance(100);
    return done;
  }

  get names(): string[] {
    return [...this.state.records.keys()].sort();
  }
}

const put = (one: SliverSpecInput) => (slivers: Map<string, SliverSpecInput>) =>
  void slivers.set(one.name, one);
const drop = (name: string) => (slivers: Map<string, SliverSpecInput>) => void slivers.delete(name);
const started = async (...args: ConstructorParameters<typeof ApiRig>) => {
  const rig = new WriterRig(...args);
  await rig.start();
  return rig;
};

describe("a writer of documents", () => {
  test("the removal of ten of twelve slivers in one delivery is confirmed, but not to a manager without that guard", async () => {
    const rig = await started("v2");
    const writer = rig.writer();
    const names = Array.from({ length: 12 }, (_, at) => `w${at}`);
    await rig.until(Promise.all(names.map((name) => writer.change(put(spec(name)), never))));
    const before = rig.calls.length;
    await rig.until(Promise.all(names.slice(2).map((name) => writer.change(drop(name), never))));
    expect(rig.names).toEqual(["w0", "w1"]);
    expect(rig.calls.slice(before)).toEqual(["GetDocument", "Deliver"]);

    await rig.until(Promise.all(names.map((name) => writer.change(put(spec(name)), never))));
    const client = rig.client({ random: seededRandom(1), faults: 0 });
    const document = async (signal: AbortSignal) => {
      const { guarded: _, ...older } = await SliverClient.prototype.document.call(client, signal);
      return older;
    };
    const older = Object.assign(client, { document });
    const late = rig.writer({ client: older });
    await expect(
      rig.until(Promise.all(names.slice(2).map((name) => late.change(drop(name), never)))),
    ).rejects.toMatchObject({ fault: 102, message: expect.stringContaining("would end 10 of 12") });
    expect(rig.names).toHaveLength(12);
  });

  test("two processes, lost calls and answers: the last word of each holds, and no sliver is lost", async () => {
    const step = fc.record({ who: fc.nat(1), name: fc.nat(3), wanted: fc.boolean(), pause: fc.nat(3) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 24 }),
        fc.nat(),
        fc.nat(30),
        async (steps, seed, faults) => {
          const rig = await started("v2");
          const random = seededRandom(seed);
          const wire = { random, faults: faults / 100 };
          const writers = [rig.writer({}, wire), rig.writer({}, wire)];
          const wanted = new Map<string, boolean>();
          const ends: Promise<void>[] = [];
          const last = new Map<string, Promise<void>>();
          for (const { who, name: number, wanted: there, pause } of steps) {
            const name = `w${who}_${number}`;
            wanted.set(name, there);
            // As a driver does: one after another for one sliver, and again until an answer came.
            const run = async () => {
              for (;;) {
                const change = writers[who]!.change(there ? put(spec(name)) : drop(name), never);
                const error = await change.then(
                  () => undefined,
                  (why) => why,
                );
                if (error === undefined) return;
                expect(["sliver-protocol.unreachable", "sliver-protocol.contended"]).toContain(error.code);
              }
            };
            const end = (last.get(name) ?? Promise.resolve()).then(run);
            last.set(name, end);
            ends.push(end);
            for (let turn = 0; turn < pause; turn++) await rig.turns(random);
          }
          await rig.until(Promise.all(ends));
          expect(rig.names).toEqual([...wanted].flatMap(([name, there]) => (there ? [name] : [])).sort());
        },
      ),
      { numRuns: 60 },
    );
  });

  test("what is asked for at once is one delivery; what comes meanwhile is the next", async () => {
    const rig = await started("v2");
    const writer = rig.writer();
    const ask = (name: string) => writer.change(put(spec(name)), never);
    await rig.until(Promise.all(["ada", "bob", "eve"].map(ask)));
    expect(rig.calls).toEqual(["GetDocument", "Deliver"]);
    rig.calls.length = 0;
    const first = ask("fay");
    await null;
    await null;
    await rig.until(Promise.all([first, ask("gus"), ask("hal")]));
    expect(rig.calls).toEqual(["GetDocument", "Deliver", "GetDocument", "Deliver"]);
    expect(rig.names).toEqual(["ada", "bob", "eve", "fay", "gus", "hal"]);
  });

  test("what is so already is not delivered again", async () => {
    const rig = await started("v2");
    const tags = { node: "0000000001" };
    await rig.until(rig.writer().change(put(spec("ada", { tags, rspec: { cpuShare: 64 } })), never));
    rig.calls.length = 0;
    const report = await rig.until(rig.writer().change(drop("bob"), never));
    expect(rig.calls).toEqual(["GetDocument", "Status"]);
    expect(report).toMatchObject({
      appliedVersion: 1,
      writer: "driver:one",
      slivers: [{ name: "ada", tags, effective: { cpuShare: 64 }, login: { user: "ny-01", port: 22 } }],
    });
  });

  test("loans and incarnations of others survive it", async () => {
    const rig = await started("v2");
    await rig.until(rig.writer().change(put(spec("ada", { rspec: { cpuShare: 96 } })), never));
    const before = rig.state.records.get("ada")!.local;
    await rig.json(ROOT, "SetLoans", ["ada", [{ to: "bob", resource: "cpuShare", amount: 8 }]]);
    await rig.until(rig.writer().change(put(spec("bob")), never));
    expect(rig.state.records.get("ada")!.local).toMatchObject({
      incarnation: before.incarnation,
      loans: [{ to: "bob", amount: 8 }],
    });
  });

  test("another writer's node is left alone until the epoch is higher; then the other one is fenced", async () => {
    const rig = await started("v2");
    const one = rig.writer();
    await rig.until(one.change(put(spec("ada")), never));
    const two = (epoch: number) => rig.writer({ writer: "metastatic:two", epoch });
    await expect(rig.until(two(1).change(put(spec("bob")), never))).rejects.toMatchObject({
      code: "sliver-protocol.owned",
      writer: "driver:one",
      message: expect.stringMatching(/node node-1 .*driver:one in epoch 1.*above 1/),
    });
    await rig.until(two(3).change(put(spec("bob")), never));
    expect(rig.names).toEqual(["ada", "bob"]);
    await expect(rig.until(one.change(drop("ada"), never))).rejects.toMatchObject({
      code: "sliver-protocol.fenced",
      epoch: 1,
      theirs: 3,
    });
    // Also without asking first: the node itself keeps them apart.
    const foreign = rig.document([], { epoch: 3, version: 9, writer: "driver:one" });
    await expect(rig.json(CONTROL, "Deliver", [foreign])).rejects.toMatchObject({ code: 102 });
    expect(rig.names).toEqual(["ada", "bob"]);
  });

  test("a watcher gets the next report of the machine, and finally none", async () => {
    const rig = await started("v2");
    const client = rig.client({ random: seededRandom(1), faults: 0 });
    const { sequence } = await client.status(never);
    const news = client.watch(sequence, never);
    await rig.until(rig.writer().change(put(spec("ada")), never));
    const report = await rig.until(news);
    expect(report.sequence).not.toBe(sequence);
    expect(await client.watch(sequence, never)).toMatchObject({ slivers: [{ name: "ada" }] });
    await rig.until(rig.writer().change(drop("ada"), never));
    expect(await rig.until(client.watch(-1, never))).toMatchObject({ slivers: [], unlisted: [] });
    const [before] = await rig.until(Promise.all([client.status(never), rig.pass(0)]));
    const now = rig.clock.monotonic();
    await rig.until(client.watch(before.sequence, never));
    expect(rig.clock.monotonic() - now).toBeLessThanOrEqual(31_000);
    await expect(client.call("Watch", ["1"], never)).rejects.toMatchObject({ fault: 102 });
  });

  test("a machine that cannot be read is reported at once, with the failures in a row, until it can", async () => {
    const rig = await started("v2");
    const client = rig.client({ random: seededRandom(1), faults: 0 });
    const { sequence } = await client.status(never);
    const { inspect } = rig.machine;
    rig.machine.inspect = () => Promise.reject(new Error("no tool speaks here"));
    const news = client.watch(sequence, never);
    await rig.until(rig.writer().change(put(spec("ada")), never));
    expect(await rig.until(news)).toMatchObject({ trouble: { message: "no tool speaks here", attempts: 1 } });
    await rig.pass(25_000);
    const later = await client.status(never);
    expect(later.trouble!.attempts).toBeGreaterThanOrEqual(3);
    rig.machine.inspect = inspect;
    await rig.pass(25_000);
    expect(await client.status(never)).toMatchObject({ slivers: [{ name: "ada", phase: "running" }] });
    expect((await client.status(never)).trouble).toBeUndefined();
  });

  test("a change that is no sliver is its own caller's trouble", async () => {
    const rig = await started("v2");
    const writer = rig.writer();
    const bad = writer.change(put(spec("ada", { keys: ["command=x ssh-ed25519 AAAA"] })), never);
    const thrown = writer.change(() => {
      throw new RangeError("no room");
    }, never);
    const good = writer.change(put(spec("bob")), never);
    // Both fail in one turn: whoever listens to the second only after the first comes too late.
    const failed = Promise.all([
      expect(bad).rejects.toMatchObject({ code: "sliver-protocol.grammar" }),
      expect(thrown).rejects.toThrow(RangeError),
    ]);
    await rig.until(failed);
    await rig.until(good);
    expect(rig.names).toEqual(["bob"]);
  });

  test("what the node refuses for good is said at once, and once", async () => {
    const rig = await started("v2");
    const stranger = rig.writer({ signer: { ...rig.signer, kid: "k9" } });
    await expect(rig.until(stranger.change(put(spec("ada")), never))).rejects.toMatchObject({
      code: "sliver-protocol.fault",
      fault: 102,
    });
    expect(rig.calls.filter((method) => method === "Deliver")).toHaveLength(1);
  });

  test("a lost store with slivers on the machine is not written over", async () => {
    const rig = await started("v2");
    await rig.until(rig.writer().change(put(spec("ada")), never));
    await rig.settle();
    for (const name of rig.files.names()) rig.files.damage(name, new Uint8Array());
    await rig.start();
    await expect(rig.until(rig.writer().change(put(spec("bob")), never))).rejects.toMatchObject({
      code: "sliver-protocol.store_lost",
      message: expect.stringContaining("(ada)"),
    });
    expect(rig.found).toEqual(["ada:running"]);
  });

  test("others are always faster: it gives up within its budget; an aborted caller is let go", async () => {
    const rig = await started("v2");
    const client = new SliverClient(async (body) => {
      const { method } = JSON.parse(body);
      if (method === "Deliver")
        await rig.json(CONTROL, "Deliver", [rig.document([], { writer: "driver:one" })]);
      const answer = await rig.handler({ method: "POST", path: "/json", body }, CONTROL);
      return answer.body;
    });
    const late = rig.writer({ client, attempts: 3 });
    await expect(rig.until(late.change(put(spec("ada")), never))).rejects.toMatchObject({
      code: "sliver-protocol.contended",
    });
    const silent = rig.writer({ client: new SliverClient(() => new Promise(() => undefined)) });
    const abort = new AbortController();
    const waiting = silent.change(put(spec("ada")), abort.signal);
    abort.abort(new Error("not wanted any more"));
    await expect(waiting).rejects.toThrow("not wanted any more");
  });
});
