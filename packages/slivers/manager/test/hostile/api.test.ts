import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CallBudget } from "../../src/api/call-budget.ts";
import { AccountSockets } from "../../src/api/edge/account-sockets.ts";
import { accountServer } from "../../src/api/edge/http-server.ts";
import type { Reader } from "../../src/api/edge/reader/reader.ts";
import { createHandler } from "../../src/api/handler.ts";
import type { Caller } from "../../src/core/permit.ts";
import { ApiRig, CONTROL, ROOT, readerIn, sliver, spec } from "../api/rig.ts";
import { INPUTS, type Input } from "./inputs.ts";

const ada = sliver("ada", 1);
const bob = sliver("bob", 1);
/** Milliseconds after which refusals are summed, and a budget is whole again. */
const PERIOD = 10_000;
const uid = process.getuid!();

describe("whatever a sliver sends", () => {
  const rig = new ApiRig("v2");
  let folder: string;
  let reader: Reader;
  let sockets: AccountSockets;
  let charged = 0;
  const failures: string[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-hostile-api-"));
    chmodSync(folder, 0o711);
    await rig.start();
    await rig.json(CONTROL, "Deliver", [
      rig.document([
        spec("ada", { rspec: { cpuShare: 64 } }),
        spec("bob"),
        spec("laz", { instantiation: "delegated" }),
      ]),
    ]);
    await rig.json(CONTROL, "Ticket", [rig.ticket(spec("used"), { jti: "u".repeat(20) })]);
    class Counting extends CallBudget {
      override spend(caller: Caller, calls: number, bytes = 0): boolean {
        if (caller.account === "ada") charged += calls + bytes;
        return super.spend(caller, calls, bytes);
      }
    }
    const budget = new Counting({
      clock: rig.clock,
      audit: (entry) => void rig.audit.push(entry),
      onFlood: () => undefined,
      onFailure: (line) => failures.push(line),
    });
    reader = readerIn(join(folder, "reader"), { onFailure: (line) => failures.push(line) });
    const handler = createHandler(rig.manager, "v2", (entry) => void rig.audit.push(entry));
    sockets = new AccountSockets(join(folder, "run"), (caller) =>
      accountServer({ handler, budget, reader }, caller),
    );
    await sockets.prepare();
    await sockets.apply([ada, bob, ROOT].map((caller) => ({ caller, uid })));
  });
  afterAll(async () => {
    await sockets.close();
    await reader.close();
    await rig.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  /** All that is answered. */
  const send = (caller: Caller, bytes: string | Buffer, isCut = false): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect(join(folder, "run", caller.account, "api.sock"));
      let said = "";
      socket.setEncoding("utf8").on("data", (part: string) => {
        said += part;
      });
      socket.on("error", () => undefined).on("close", () => resolve(said));
      if (isCut) socket.end(bytes);
      else socket.write(bytes);
    });
  const post = (path: string, body: string | Buffer) => {
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
    return Buffer.concat([Buffer.from(head), Buffer.from(body)]);
  };
  const isWell = async (caller: Caller) =>
    expect(await send(caller, post("/json", '{"method":"Help","params":[]}'))).toMatch(
      /^HTTP\/1\.1 200.*SetLoans/s,
    );

  const check = async ({ send: make, refused }: Input) => {
    const { state } = rig.manager;
    const [steps, notes, found] = [rig.machine.log.length, rig.audit.length, rig.found];
    charged = 0;
    const what = make(rig);
    const answer = await send(ada, "raw" in what ? what.raw : post(what.path, what.body), "isCut" in what);
    if (typeof refused === "number") expect(Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0)).toBe(refused);
    else expect(answer).toMatch(refused);
    // A refusal tells nothing of the machine.
    expect(answer).not.toMatch(/root:x:|BEGIN|node_modules|\n {4}at /);
    expect(rig.manager.state).toBe(state);
    expect(rig.machine.log).toHaveLength(steps);
    expect(charged).toBeGreaterThanOrEqual(1);
    await isWell(bob);
    await isWell(ROOT);
    await rig.clock.advance(PERIOD);
    expect(rig.audit.slice(notes)).toContainEqual(
      expect.objectContaining({ account: "ada", verdict: expect.stringMatching(/denied|fault|refused/) }),
    );
    expect(rig.found).toEqual(found);
    expect(failures).toEqual([]);
  };

  test.each(INPUTS.map((one) => [one.what, one] as const))(
    "%s: refused, counted, charged, and nothing comes of it",
    (_, input) => check(input),
  );

  test("loans that move nothing: to itself, to an unknown sliver, of 0, in a circle", async () => {
    const effective = () =>
      rig.json(CONTROL, "Status").then((status) => JSON.stringify((status as { slivers: object }).slivers));
    const share = async (name: string) =>
      ((await rig.json(ROOT, "GetEffectiveRSpec", [name])) as { cpuShare: number }).cpuShare;
    const before = [await share("ada"), await share("bob")];
    for (const list of [
      [{ to: "ada", resource: "cpuShare", amount: 16 }],
      [{ to: "nobody", resource: "cpuShare", amount: 16 }],
      [{ to: "bob", resource: "cpuShare", amount: 0 }],
      [{ to: "bob", resource: "cpuShare", amount: 1_000_000_000_000 }],
    ]) {
      expect(
        await send(ada, post("/json", JSON.stringify({ method: "SetLoans", params: ["ada", list] }))),
      ).toMatch(/200 OK/);
      expect([await share("ada"), await share("bob")], JSON.stringify(list)).toEqual(before);
    }
    await send(
      ada,
      post(
        "/json",
        '{"method":"SetLoans","params":["ada",[{"to":"bob","resource":"cpuShare","amount":32}]]}',
      ),
    );
    await send(
      bob,
      post(
        "/json",
        '{"method":"SetLoans","params":["bob",[{"to":"ada","resource":"cpuShare","amount":32}]]}',
      ),
    );
    expect((await share("ada")) + (await share("bob"))).toBe(before[0]! + before[1]!);
    expect(await effective()).not.toContain("NaN");
  });

  test("a connection that says nothing, and one whose headers never end: they end by themselves, and delay no other client", async () => {
    const silent = ["", "POST /json HTTP/1.1\r\nhost: x\r\nx-a: "].map(
      (text) =>
        new Promise<string>((resolve) => {
          const socket = connect(join(folder, "run", "ada", "api.sock"));
          let said = "";
          socket.on("data", (part) => {
            said += part.toString();
          });
          socket.on("error", () => undefined).on("close", () => resolve(said));
          if (text !== "") socket.write(text);
        }),
    );
    await isWell(bob);
    for (const said of await Promise.all(silent)) expect(said).toMatch(/^HTTP\/1\.1 408|^$/);
  });

  test("that is 77 inputs and more, each once", () => {
    expect(new Set(INPUTS.map(({ what }) => what)).size).toBe(INPUTS.length);
    expect(INPUTS.length).toBeGreaterThanOrEqual(77);
  });
});
