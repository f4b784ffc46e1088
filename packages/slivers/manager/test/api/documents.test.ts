import { seededRandom } from "@nodeyard/runtime";
import { signText } from "@nodeyard/sliver-protocol";
import { describe, expect, test } from "vitest";
import { writeResponse } from "../../src/api/xmlrpc/write.ts";
import { ApiRig, CONTROL, ROOT, signerOf, sliver, spec } from "./rig.ts";

const started = async (more = {}) => {
  const rig = new ApiRig("v2", more);
  await rig.start();
  return rig;
};
const lazy = (generation = 1) => spec("laz", { instantiation: "delegated", generation });

describe("signed documents", () => {
  test("delivered by the launcher, carried out, and reported", async () => {
    const rig = await started({ capacity: { cpu: 100 } });
    const rspec = { cpuGuarantee: 80 };
    const text = rig.document([spec("ada", { rspec }), spec("bob", { rspec }), { name: "Bad" } as never]);
    const report = await rig.json(CONTROL, "Deliver", [text]);
    expect(report).toMatchObject({
      node: "node-1",
      appliedEpoch: 1,
      appliedVersion: 1,
      safeMode: false,
      keySet: 1,
    });
    expect((report as { refused: unknown[] }).refused).toMatchObject([
      { code: "malformed" },
      { name: "bob", code: "capacity", reason: "wants 80 cpu, and 20 is free" },
    ]);
    expect(await rig.json(CONTROL, "Status")).toMatchObject({
      slivers: [
        {
          name: "ada",
          generation: 1,
          index: 1,
          phase: "running",
          unenforced: [],
          effective: { cpuGuarantee: 80 },
        },
      ],
    });
  });

  test("without a day's budget of traffic, which is PLC's, unless it says one", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada"), spec("bob", { rspec: { netDay: 7 } })])]);
    const budget = async (name: string) =>
      (await rig.json(CONTROL, "GetRSpec", [name])) as { netDay: number };
    expect((await budget("ada")).netDay).toBe(0);
    expect((await budget("bob")).netDay).toBe(7);
    await rig.call(ROOT, "Ticket", [rig.ticket(lazy())]);
    expect((await budget("laz")).netDay).toBe(0);
  });

  test("what the kernel killed for memory is in Status and in the log", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada"), spec("bob")])]);
    rig.machine.made.get(1)!.memoryKills = 2;
    await rig.pass(20_000);
    expect(await rig.json(CONTROL, "Status")).toMatchObject({
      slivers: [{ name: "ada", memoryKills: 2 }, {}],
    });
    const lines = rig.log.filter((line) => line.includes("memory was full"));
    expect(lines).toEqual(["the kernel killed 2 processes of ada, whose memory was full"]);
  });

  test("Status has what a sliver uses, and the kills of one that ended", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [
      rig.document([spec("ada", { rspec: { memoryCap: 2048 } }), spec("bob")]),
    ]);
    Object.assign(rig.machine.made.get(1)!, { memoryKills: 3, usage: { memory: 4096, pids: 2 } });
    await rig.pass(20_000);
    expect(await rig.json(CONTROL, "Status")).toMatchObject({
      slivers: [{ name: "ada", usage: { memory: 4096, pids: 2 } }, { name: "bob" }],
    });
    expect(await rig.json(CONTROL, "Status")).not.toHaveProperty("killed");
    await rig.json(CONTROL, "Deliver", [rig.document([])]);
    await rig.pass(20_000);
    expect(await rig.json(CONTROL, "Status")).toMatchObject({
      slivers: [],
      killed: [{ name: "ada", memoryKills: 3, memoryCap: 2048 }],
    });
  });

  test("only root's and the launcher's", async () => {
    const rig = await started();
    await expect(rig.json(sliver("ada"), "Deliver", [rig.document([])])).rejects.toMatchObject({ code: 108 });
    await expect(rig.json({ ...ROOT, role: "controller" }, "Status")).rejects.toMatchObject({ code: 108 });
  });

  test("for another node, by another key, as a ticket, unsigned, changed, or older: refused, and nothing changes", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada")])]);
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada")])]);
    const before = rig.manager.state;
    const good = rig.document([]);
    const [head, body, signature] = good.split(".") as [string, string, string];
    const unsigned = Buffer.from('{"alg":"none","typ":"nodeyard-sliver-document+jws","kid":"k1"}').toString(
      "base64url",
    );
    const bad = [
      rig.document([], { node: "node-2" }),
      rig.document([], {}, { ...signerOf("k1") }),
      rig.document([], {}, signerOf("k9")),
      rig.ticket(lazy()),
      `${unsigned}.${body}.`,
      `${head}.${Buffer.from("{}").toString("base64url")}.${signature}`,
      `${good}=`,
      rig.document([], { version: 1 }),
      rig.document([], { epoch: 0 }),
      rig.document([], { v: 2 as never }),
      "",
      5,
      null,
    ];
    for (const text of bad)
      await expect(rig.json(CONTROL, "Deliver", [text])).rejects.toMatchObject({ code: 102 });
    expect(rig.manager.state).toBe(before);
    await rig.json(CONTROL, "Deliver", [good]);
    expect(rig.found).toEqual([]);
  });

  test("a launcher that was replaced is refused: its epoch is lower", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada")], { epoch: 2 })]);
    await expect(
      rig.json(CONTROL, "Deliver", [rig.document([], { epoch: 1, version: 1000 })]),
    ).rejects.toMatchObject({ code: 102 });
    expect(rig.found).toEqual(["ada:running"]);
  });

  test("an epoch far above the present one is refused, so that one can always follow; times in seconds are epochs, too", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada")])]);
    const now = Math.floor(rig.clock.now() / 1000);
    for (const epoch of [Number.MAX_SAFE_INTEGER, now + 100_000])
      await expect(rig.json(CONTROL, "Deliver", [rig.document([], { epoch })])).rejects.toMatchObject({
        code: 102,
        message: expect.stringContaining("too far above 1"),
      });
    await expect(
      rig.call(ROOT, "Ticket", [rig.ticket(lazy(), { epoch: Number.MAX_SAFE_INTEGER })]),
    ).rejects.toMatchObject({ message: expect.stringContaining("too far above 1") });
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada")], { epoch: now })]);
    await rig.json(CONTROL, "Deliver", [rig.document([], { epoch: now + 1 })]);
    expect(rig.found).toEqual([]);
    const fresh = await started();
    const highest = fresh.document([], { epoch: Number.MAX_SAFE_INTEGER });
    await expect(fresh.json(CONTROL, "Deliver", [highest])).rejects.toMatchObject({ code: 102 });
  });

  test("a key set far above the present one is refused, so that one can always follow", async () => {
    const rig = await started();
    const next = signerOf("k2");
    const rotate = (version: number) => {
      const keySet = {
        v: 1,
        version,
        keys: [
          { kid: "k1", x: rig.signer.x },
          { kid: "k2", x: next.x },
        ],
      };
      return rig.json(CONTROL, "RotateKeys", [signText("key-set", keySet, rig.signer)]);
    };
    await expect(rotate(Number.MAX_SAFE_INTEGER)).rejects.toMatchObject({ code: 102 });
    expect(await rotate(500)).toBe(1);
  });

  test("one that would end most slivers is withheld, which Status and log say, until one says how many", async () => {
    const rig = await started();
    const all = ["ada", "bob", "cyd", "dan"].map((name) => spec(name));
    await rig.json(CONTROL, "Deliver", [rig.document(all)]);
    for (let time = 0; time < 2; time++) {
      await expect(rig.json(CONTROL, "Deliver", [rig.document([])])).rejects.toMatchObject({
        code: 102,
        message: expect.stringContaining('"removes": 4'),
      });
      await rig.pass(1_000_000);
    }
    expect(rig.found).toHaveLength(4);
    expect(await rig.json(CONTROL, "Status")).toMatchObject({
      appliedVersion: 1,
      withheld: expect.stringContaining("would end 4 of 4 slivers"),
    });
    expect(rig.log.filter((line) => line.startsWith("withheld: "))).toHaveLength(1);
    const report = await rig.json(CONTROL, "Deliver", [rig.document([], { removes: 4 })]);
    expect(report).not.toHaveProperty("withheld");
    expect(rig.found).toEqual([]);
  });

  test("keys rotate: the next set is signed by the present one, and the old key ends with it", async () => {
    const rig = await started();
    const next = signerOf("k2");
    const keySet = { v: 1, version: 2, keys: [{ kid: "k2", x: next.x }] };
    await expect(rig.json(CONTROL, "RotateKeys", [signText("key-set", keySet, next)])).rejects.toMatchObject({
      code: 102,
    });
    expect(await rig.json(CONTROL, "RotateKeys", [signText("key-set", keySet, rig.signer)])).toBe(1);
    await expect(rig.json(CONTROL, "RotateKeys", [signText("key-set", keySet, next)])).rejects.toMatchObject({
      code: 102,
    });
    await expect(rig.json(CONTROL, "Deliver", [rig.document([])])).rejects.toMatchObject({ code: 102 });
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada")], {}, next)]);
    await rig.start();
    expect(rig.manager.state.keySet?.version).toBe(2);
    expect(rig.found).toEqual(["ada:running"]);
  });

  test("loans by the launcher's policy, to one generation of the borrower", async () => {
    const rig = await started();
    const lend = {
      loans: [{ to: "bob", generation: 1, resource: "cpuShare", amount: 32, by: "policy" }],
      rspec: { cpuShare: 64 },
    };
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada", lend), spec("bob")])]);
    expect(await rig.json(CONTROL, "GetEffectiveRSpec", ["bob"])).toMatchObject({ cpuShare: 64 });
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada", lend), spec("bob", { generation: 2 })])]);
    expect(await rig.json(CONTROL, "GetEffectiveRSpec", ["bob"])).toMatchObject({ cpuShare: 32 });
    expect(await rig.json(CONTROL, "GetLoans", ["ada"])).toMatchObject([
      { honoured: false, refusal: "generation" },
    ]);
  });

  test("SetLoans of our own says which loans are in force, and binds them to who has the name now", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [
      rig.document([spec("ada", { rspec: { cpuShare: 64 } }), spec("bob", { generation: 7 })]),
    ]);
    const loans = [
      { to: "bob", resource: "cpuShare", amount: 32 },
      { to: "bob", resource: "cpuShare", amount: 1 },
    ];
    expect(await rig.json(sliver("ada", 1), "SetLoans", ["ada", loans])).toMatchObject({
      accepted: [{ to: "bob", generation: 7, by: "ada", amount: 32 }],
      refused: [{ amount: 1, refusal: "floor" }],
    });
  });
});

describe("tickets", () => {
  test("redeemed by anybody who carries it: the sliver is made, others stay, and the next document may end it", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada")])]);
    expect(await rig.call(sliver("ada", 1), "Ticket", [rig.ticket(lazy())])).toBe(1);
    expect(rig.found).toEqual(["ada:running", "laz:running"]);
    expect(rig.manager.state.minimum).toEqual({ epoch: 1, number: 1 });
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada")])]);
    expect(rig.found).toEqual(["ada:running"]);
  });

  test("used once, over restarts too: the id is stored with the effect", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [rig.document([])]);
    const ticket = rig.ticket(lazy());
    await rig.call(ROOT, "Ticket", [ticket]);
    await expect(rig.call(ROOT, "Ticket", [ticket])).rejects.toMatchObject({
      message: expect.stringContaining("has been used"),
    });
    await rig.start();
    await expect(rig.call(ROOT, "Ticket", [ticket])).rejects.toMatchObject({
      message: expect.stringContaining("has been used"),
    });
    await rig.pass(400_000);
    await expect(rig.call(ROOT, "Ticket", [ticket])).rejects.toMatchObject({
      message: expect.stringContaining("expired"),
    });
    expect(rig.manager.state.usedTickets.size).toBe(0);
  });

  const HEARTBEATS = 80_000;
  const refusedAs = (message: string) => ({ message: expect.stringContaining(message) });

  test("used once, also after the clock was ahead for a while and was trusted", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [rig.document([])]);
    const lasting = (id: string) => {
      const exp = Math.floor(rig.clock.now() / 1000) + 900;
      return rig.ticket(lazy(), { exp, jti: id.repeat(20) });
    };
    const ticket = lasting("a");
    expect(await rig.call(ROOT, "Ticket", [ticket])).toBe(1);
    rig.clock.jump(3_600_000);
    await rig.pass(HEARTBEATS);
    expect(rig.manager.state.usedTickets.size).toBe(0);
    rig.clock.jump(-3_600_000);
    await rig.pass(HEARTBEATS);
    await expect(rig.call(ROOT, "Ticket", [ticket])).rejects.toMatchObject(
      refusedAs("cannot know which tickets"),
    );
    // What ends later was not among them.
    expect(await rig.call(ROOT, "Ticket", [lasting("b")])).toBe(1);
  });

  test("used once, though the next manager started while the clock was ahead", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [rig.document([])]);
    const ticket = rig.ticket(lazy());
    expect(await rig.call(ROOT, "Ticket", [ticket])).toBe(1);
    rig.clock.jump(3_600_000);
    await rig.start();
    await rig.pass(HEARTBEATS);
    rig.clock.jump(-3_600_000);
    await rig.start();
    await rig.pass(HEARTBEATS);
    await expect(rig.call(ROOT, "Ticket", [ticket])).rejects.toMatchObject(
      refusedAs("cannot know which tickets"),
    );
  });

  test("a disk that fails uses nothing up", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [rig.document([])]);
    const ticket = rig.ticket(lazy());
    rig.files.faults.set(rig.files.calls + 1, new Error("EIO"));
    await expect(rig.call(ROOT, "Ticket", [ticket])).rejects.toMatchObject({ code: 104 });
    expect(await rig.call(ROOT, "Ticket", [ticket])).toBe(1);
  });

  test("the power may go at any call of its write: then it is used and its sliver wanted, or neither", async () => {
    for (let fail = 1; fail <= 8; fail++)
      for (let seed = 0; seed < 10; seed++) {
        const rig = await started();
        await rig.json(CONTROL, "Deliver", [rig.document([])]);
        rig.files.failAt = rig.files.calls + fail;
        const answer = await rig.call(ROOT, "Ticket", [rig.ticket(lazy())]).catch(() => undefined);
        rig.files.powerLoss(seededRandom(seed * 10 + fail));
        await rig.start();
        const { usedTickets, records } = rig.manager.state;
        if (answer === 1) expect(usedTickets.size).toBe(1);
        expect(records.get("laz")?.local.desired === true).toBe(usedTickets.size === 1);
      }
  });

  test("for a generation that has ended: refused", async () => {
    const rig = await started();
    await rig.json(CONTROL, "Deliver", [rig.document([lazy(5)])]);
    await expect(rig.call(ROOT, "Ticket", [rig.ticket(lazy(4))])).rejects.toMatchObject({ code: 104 });
    expect(rig.found).toEqual([]);
    expect(await rig.call(ROOT, "Ticket", [rig.ticket(lazy(5), { jti: "k".repeat(20) })])).toBe(1);
    expect(rig.found).toEqual(["laz:running"]);
  });
});

test("AdminTicket: root alone, a ticket of old without a signature", async () => {
  const rig = new ApiRig("v2");
  await rig.start();
  await rig.list(5);
  const ticket = writeResponse({
    timestamp: 6,
    slivers: [{ name: "laz", instantiation: "delegated", attributes: [] }],
  });
  for (const caller of [CONTROL, sliver("ada")])
    await expect(rig.call(caller, "AdminTicket", [ticket])).rejects.toMatchObject({ code: 108 });
  expect(await rig.call(ROOT, "AdminTicket", [ticket])).toBe(1);
  expect(rig.found).toEqual(["laz:running"]);
  const old = ticket.replace("<int>6</int>", "<int>4</int>");
  await expect(rig.call(ROOT, "AdminTicket", [old])).rejects.toMatchObject({ code: 104 });
});
