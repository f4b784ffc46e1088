import { boskos } from "@nodeyard/connect-boskos";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fakeConfig } from "../../../packages/nodeyard/cli/test/nodeyard.ts";
import { type AnsweredResource, BoskosCaller } from "../boskos-caller.ts";
import { boskosctl, requireBoskos, startBoskos } from "../boskos-real.ts";
import { type Opened, Yard } from "../yard.ts";

/** Method, path, parameters and body. NAME stands for the resource that was acquired last. */
type Call = readonly [string, string, string, string?];

/** From a free resource to a free resource, by all routes. */
const CALLS: readonly Call[] = [
  ["GET", "/", ""],
  ["GET", "/healthz", ""],
  ["GET", "/acquire", ""],
  ["PUT", "/acquirebystate", ""],
  ["GET", "/release", ""],
  ["GET", "/update", ""],
  ["GET", "/reset", ""],
  ["POST", "/metric", ""],
  ["GET", "/metric", ""],
  ["GET", "/metric", "type=unknown"],
  ["POST", "/acquire", "type=small&state=free&dest=busy"],
  ["POST", "/acquire", "type=small&type=other&owner=me"],
  ["POST", "/acquire", "type=unknown&state=free&dest=busy&owner=me"],
  ["POST", "/acquire", "type=unknown&state=free&dest=busy&owner=me&request_id=1"],
  ["POST", "/acquire", "type=small&state=strange&dest=busy&owner=me"],
  ["POST", "/acquire", "type=small&state=free&dest=busy&owner=me&request_id=2"],
  ["POST", "/acquire", "type=small&state=free&dest=busy&owner=me"],
  ["POST", "/acquire", "type=small&state=free&dest=busy&owner=you&request_id=3"],
  ["GET", "/metric", "type=small"],
  ["POST", "/update", "name=NAME&owner=me"],
  ["POST", "/update", "name=NAME&owner=me&state=busy"],
  ["POST", "/update", "name=NAME&owner=me&state=busy", '{"job":"17","tmp":"x"}'],
  ["POST", "/update", "name=NAME&owner=me&state=busy", '{"tmp":""}'],
  ["POST", "/update", "name=NAME&owner=me&state=busy", "null"],
  ["POST", "/update", "name=NAME&owner=me&state=free"],
  ["POST", "/update", "name=NAME&owner=you&state=free"],
  ["POST", "/update", "name=nobody&owner=me&state=busy"],
  ["POST", "/release", "name=NAME&dest=dirty"],
  ["POST", "/release", "name=NAME&dest=dirty&owner=you"],
  ["POST", "/release", "name=nobody&dest=dirty&owner=me"],
  ["POST", "/release", "name=NAME&dest=leased&owner=me"],
  ["POST", "/update", "name=NAME&owner=me&state=leased"],
  ["GET", "/metric", "type=small"],
  ["POST", "/acquirebystate", "state=leased&dest=busy&owner=me"],
  ["POST", "/acquirebystate", "state=leased&dest=busy&owner=me&names=nobody"],
  ["POST", "/acquirebystate", "state=free&dest=busy&owner=me&names=NAME"],
  ["POST", "/acquirebystate", "state=leased&dest=busy&owner=mason&names=NAME"],
  ["POST", "/acquirebystate", "state=busy&dest=busy&owner=me&names=NAME"],
  ["POST", "/release", "name=NAME&dest=warm&owner=mason"],
  ["POST", "/acquire", "type=small&state=warm&dest=busy&owner=me&request_id=4"],
  ["POST", "/reset", "type=small&state=busy&expire=1h"],
  ["POST", "/reset", "type=small&state=busy&expire=soon&dest=dirty"],
  ["POST", "/reset", "type=small&state=busy&expire=10&dest=dirty"],
  ["POST", "/reset", "type=small&state=busy&expire=1h0m0s&dest=dirty"],
  ["POST", "/reset", "type=unknown&state=busy&expire=0s&dest=dirty"],
  ["POST", "/reset", "type=small&state=busy&expire=0s&dest=free"],
];

/** The answers of one server, with what has to differ between two replaced. */
async function answers(url: string): Promise<readonly string[]> {
  const caller = new BoskosCaller(url);
  const all: string[] = [];
  let name = "";
  for (const [method, path, query, body] of CALLS) {
    const asked = Object.fromEntries(new URLSearchParams(query.replaceAll("NAME", name)));
    const { status, text } = await caller.call(method, path, asked, body);
    const [found] = path.startsWith("/acquire") && status === 200 ? [JSON.parse(text)].flat() : [];
    name = (found as AnsweredResource | undefined)?.name ?? name;
    const plain = text
      .replaceAll(/"lastupdate":"[^"]+"/g, '"lastupdate":"WHEN"')
      .replaceAll(name || "NAME", "NAME");
    all.push(`${method} ${path} ${query} ${body ?? ""}: ${status} ${withoutNode(plain).trimEnd()}`);
  }
  return all;
}

/** What our server says of the node, which the real one has not. */
function withoutNode(text: string): string {
  return text.replaceAll(/"userdata":({[^}]*})/g, (_, userdata: string) => {
    const { node, address, port, user, connection, known_hosts, ...theirs } = JSON.parse(userdata);
    return `"userdata":${JSON.stringify(theirs)}`;
  });
}

describe.skipIf(requireBoskos())("the real Boskos", () => {
  let yard: Yard;
  let served: Opened;
  beforeAll(async () => {
    yard = await Yard.open(fakeConfig().replace("max-servers: 5", "max-servers: 1"));
    served = await yard.connector(boskos, options);
  });
  afterAll(() => yard.close());

  /** A client asks every three seconds. */
  const options = { "wait-seconds": 1, "request-ttl-seconds": 8 };
  const ctl = (words: string, signal?: AbortSignal) =>
    boskosctl(["--server-url", served.url, "--owner-name", "me", ...words.split(" ")], signal);

  test("answers the same calls with the same status and text", async () => {
    const real = await startBoskos("resources:\n- {type: small, state: free, names: [resource-1]}\n");
    try {
      const theirs = await answers(real.url);
      expect(await answers(served.url)).toEqual(theirs);
    } finally {
      await real.stop();
    }
  });

  test("its client acquires, sends heartbeats, reads metrics and releases", async () => {
    const { code, out, err } = await ctl(
      "acquire --type small --state free --target-state busy --timeout 60s",
    );
    expect([code, err]).toEqual([0, ""]);
    const resource = JSON.parse(out) as AnsweredResource;
    expect(resource).toMatchObject({ type: "small", state: "busy", owner: "me", userdata: { user: "zuul" } });
    const beats = await boskosctl([
      "--server-url",
      served.url,
      "--owner-name",
      "me",
      "heartbeat",
      "--resource",
      out,
      "--period",
      "100ms",
      "--timeout",
      "1s",
    ]);
    expect(beats.out).toContain(`heartbeat sent for resource "${resource.name}"\n`);
    expect(beats.err).toBe("");
    expect(JSON.parse((await ctl("metrics --type small")).out)).toEqual({
      type: "small",
      current: { busy: 1 },
      owner: { me: 1 },
    });
    const none = await ctl("acquire --type small --state free --target-state busy");
    expect([none.code, none.err]).toEqual([1, "failed to acquire a resource: resources not found\n"]);
    expect(await ctl(`release --name ${resource.name} --target-state dirty`)).toEqual({
      code: 0,
      out: `released resource "${resource.name}"\n`,
      err: "",
    });
  });

  test("clients that wait are served in their order while the connector is started anew, and one that was killed is skipped", async () => {
    const acquire = "acquire --type small --state free --target-state busy --timeout 120s";
    const leases = async (state: string) => (await yard.pool.call("list_leases", { query: { state } })).items;
    const held = JSON.parse((await ctl(acquire)).out) as AnsweredResource;
    const killed = new AbortController();
    const order: string[] = [];
    const waits = async (name: string, signal?: AbortSignal) => {
      const { code, out } = await ctl(acquire, signal);
      if (code !== 0) return;
      order.push(name);
      const { name: resource } = JSON.parse(out) as AnsweredResource;
      await ctl(`release --name ${resource} --target-state dirty`);
    };
    const all: Promise<void>[] = [];
    for (const [index, name] of ["first", "killed", "second", "third"].entries()) {
      all.push(waits(name, name === "killed" ? killed.signal : undefined));
      await expect.poll(async () => (await leases("waiting")).length).toBe(index + 1);
    }
    killed.abort();
    const listen = new URL(served.url).host;
    await served.close(0);
    served = await yard.connector(boskos, { ...options, listen });
    await ctl(`release --name ${held.name} --target-state dirty`);
    await Promise.all(all);
    expect(order).toEqual(["first", "second", "third"]);
    await expect.poll(() => leases("waiting,granted")).toEqual([]);
  });
});
