import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { seededRandom } from "@nodeyard/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeResponse } from "../../src/api/xmlrpc/write.ts";
import { POLICIES, PROFILES } from "../../src/core/profiles.ts";
import { httpPost } from "../../src/sources/edge/http.ts";
import { type PlcAuth, type Post, plcSource } from "../../src/sources/plc.ts";
import { Rig } from "../manager/rig.ts";

let centre: ChildProcess;
let url: string;

beforeAll(async () => {
  centre = spawn("python3", [join(import.meta.dirname, "plc.py")], { stdio: ["ignore", "pipe", "inherit"] });
  const port = await new Promise<string>((resolve) =>
    centre.stdout!.once("data", (chunk) => resolve(String(chunk).trim())),
  );
  url = `http://127.0.0.1:${port}/`;
});
afterAll(() => void centre.kill("SIGKILL"));

const started = async (session: string | PlcAuth, post: Post, waits = true) => {
  const machine = { policy: POLICIES.v2, cpu: 4000, link: 1_000_000_000, siblings: [], highestIndex: 8 };
  const rig = new Rig({ node: "7", machine });
  await rig.start();
  let polled: () => void = () => undefined;
  const answers: Promise<unknown>[] = [];
  const source = plcSource({
    manager: rig.manager,
    profile: PROFILES.v2,
    post: (call, signal) => {
      const answer = post(call, signal);
      answers.push(answer.catch(() => undefined));
      polled();
      return answer;
    },
    auth: typeof session === "string" ? { session } : session,
    clock: rig.clock,
    random: seededRandom(1),
    log: { info: () => undefined, error: (text) => void rig.log.push(text) },
    period: 600_000,
  });
  /** Lets the poll that is under way end, and what follows from it. */
  const poll = async () => {
    await answers.at(-1);
    for (let turn = 0; turn < 5; turn++) await rig.settle();
  };
  const next = async () => {
    const asked = new Promise<void>((resolve) => {
      polled = resolve;
    });
    await rig.clock.advance(900_000);
    await asked;
    await poll();
  };
  source.start();
  if (waits) await poll();
  return { rig, source, next };
};

describe("a centre of PlanetLab's, Python's own XML-RPC server", () => {
  test("what it lists is made, what it does not list any more goes, what is malformed spoils nothing", async () => {
    const { rig, source, next } = await started(
      "good",
      httpPost(url, () => ({})),
    );
    expect(rig.found).toEqual(["site_exp:running"]);
    const { applied } = [...rig.machine.made.values()][0]!;
    expect(applied).toMatchObject({
      effective: { cpuShare: 96 },
      keys: [expect.stringMatching(/^ssh-ed25519 \S+$/)],
    });
    expect(rig.manager.state.refused).toMatchObject([{ name: "no_instantiation", code: "malformed" }]);
    await next();
    expect(rig.found).toEqual([]);
    expect([...rig.manager.state.records.keys()]).toEqual(["site_lazy"]);
    await source.close();
  });

  test("with the node's key it makes a session, and another one when that has ended", async () => {
    const methods: string[] = [];
    const send = httpPost(url, () => ({}));
    const post: Post = (text, signal) => {
      methods.push(/<methodName>(\w+)</.exec(text)![1]!);
      return send(text, signal);
    };
    const { rig, source, next } = await started({ nodeId: "7", key: "the key of node 7" }, post, false);
    await expect.poll(() => rig.manager.state.minimum.number > 0).toBe(true);
    expect(methods).toEqual(["GetSession", "GetSlivers"]);
    const { number } = rig.manager.state.minimum;
    // Its sessions serve one call.
    await next();
    await expect.poll(() => rig.manager.state.minimum.number > number).toBe(true);
    expect(methods.slice(2)).toEqual(["GetSlivers", "GetSession", "GetSlivers"]);
    await source.close();
    const wrong = await started({ nodeId: "7", key: "another key" }, send, false);
    await expect.poll(() => wrong.rig.log.join()).toMatch(/103.*Failed to authenticate call/);
    await wrong.source.close();
  });

  test("an empty answer ends four slivers when the next poll says the same, and not when it was a mistake", async () => {
    let listed = ["a_1", "a_2", "a_3", "a_4"];
    let timestamp = 1;
    const post: Post = async () => {
      const slivers = listed.map((name) => ({ name, instantiation: "plc-instantiated" }));
      return writeResponse({ node_id: 7, timestamp: timestamp++, slivers });
    };
    const { rig, source, next } = await started("good", post);
    expect(rig.found).toHaveLength(4);
    listed = [];
    await next();
    expect(rig.found).toHaveLength(4);
    expect(rig.log.join()).toMatch(/would end 4 of 4 slivers/);
    listed = ["a_1", "a_2", "a_3", "a_4"];
    await next();
    expect(rig.manager.withheld).toBeUndefined();
    listed = [];
    await next();
    expect(rig.found).toHaveLength(4);
    await next();
    expect(rig.found).toEqual([]);
    await source.close();
  });

  test("a fault, another node's reply, or no server: reported, and everything stays", async () => {
    const post = httpPost(url, () => ({}));
    for (const [session, how, why] of [
      ["fault", post, /fault.*session has ended/],
      ["other", post, /for node 8/],
      ["good", httpPost("http://127.0.0.1:1/", () => ({})), /ECONNREFUSED/],
      ["good", async () => "<html>", /XML/],
    ] as const) {
      const { rig, source } = await started(session, how);
      expect(rig.log.join("\n")).toMatch(why);
      expect(rig.manager.state.safe).toBe(true);
      await source.close();
    }
  });

  test("an answer that never comes is given up after half a period, and asked for again", async () => {
    let asked = 0;
    const silence: Post = (_call, signal) => {
      asked += 1;
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    };
    const { rig, source } = await started("good", silence, false);
    await rig.pass(300_000);
    expect(rig.log.join()).toMatch(/no answer within 300 s/);
    await rig.pass(900_000);
    expect(asked).toBe(2);
    await source.close();
  });
});
