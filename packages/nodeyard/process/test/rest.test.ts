import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { connect, type YardEvent } from "@nodeyard/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EventClient } from "../../../faces/api/test/v1/event-client.ts";
import { until } from "../../../pool/launcher/test/rig.ts";
import { fakeConfig, Running, Site } from "../../cli/test/nodeyard.ts";

interface LeaseBody {
  readonly id: string;
  readonly state: string;
  readonly expires: string;
  readonly nodes: readonly string[];
}

interface JournalRow {
  readonly at: number;
  readonly event: string;
  readonly node: string | null;
  readonly request: string | null;
  readonly lease: string | null;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** A program that uses a node until it is killed; it prints the lease's id. */
const CLIENT = `
import { connect } from "@nodeyard/client";
const [address, token] = process.argv.slice(1);
await using lease = await connect(address, { token }).lease({ labels: ["small"], heartbeat_seconds: 10 });
console.log(lease.id);
await new Promise((resolve) => setTimeout(resolve, 600_000));`;

let site: Site;
let up: Running;
let url: string;
let token: string;
/** Of a browser that was logged in. */
let cookie: string;

async function start(): Promise<void> {
  up = site.start("-c", site.config, "up", "--webapp", "127.0.0.1:0");
  await up.printed("Nodeyard is up");
  await up.printed('"address":"http://');
  url = /"address":"(http:\/\/[^"]+)"/.exec(up.err)![1]!;
}

beforeAll(async () => {
  process.env.NODEPOOL_TEST_SECRET = "hidden";
  site = new Site(fakeConfig());
  await start();
  ({ token } = await site.json<{ token: string }>("token", "create", "ci", "--role", "operator"));
});
afterAll(() => site.close());

async function call<T>(
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<T> {
  const reply = await fetch(url + path, {
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    ...(body && { method: "POST", body: JSON.stringify(body) }),
  });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

const lease = async (id: string): Promise<LeaseBody | undefined> =>
  (await call<{ items: LeaseBody[] }>(`/v1/leases?id=${id}`)).items[0];
const granted = (id: string) =>
  until(`lease ${id} is granted`, async () => {
    const found = await lease(id);
    return found?.state === "granted" && found;
  });

function journal(): readonly JournalRow[] {
  const database = new DatabaseSync(`${site.state}/journal.sqlite`, { readOnly: true, timeout: 5_000 });
  const rows = database
    .prepare("SELECT at, event, node, request, lease, facts FROM events ORDER BY id")
    .all();
  database.close();
  return rows.map((row) => ({ ...row, facts: JSON.parse(String(row.facts)) })) as unknown as JournalRow[];
}

/** What an event of the journal says of its subject: the state from then on; null: it is gone. */
const MEANING: Readonly<Record<string, readonly ["node" | "request" | "lease", string | null]>> = {
  "node.created": ["node", "building"],
  "node.ready": ["node", "ready"],
  "node.in-use": ["node", "in-use"],
  "node.returned": ["node", "used"],
  "node.deleting": ["node", "deleting"],
  "node.deleted": ["node", null],
  "request.accepted": ["request", "pending"],
  "request.fulfilled": ["request", "fulfilled"],
  "lease.granted": ["lease", "granted"],
  "lease.ended": ["lease", null],
};

type States = readonly (string | null | undefined)[];

/** The states of each thing in the journal, by kind and id. A deletion that another process goes on with is there twice. */
function transitions(rows: readonly JournalRow[]): ReadonlyMap<string, States> {
  const found = new Map<string, (string | null)[]>();
  for (const row of rows) {
    const [kind, state] = MEANING[row.event] ?? [];
    if (kind === undefined || state === undefined) continue;
    const key = `${kind} ${row[kind]}`;
    const states = found.get(key) ?? [];
    if (states.at(-1) !== state) found.set(key, [...states, state]);
  }
  return found;
}

interface Sent {
  readonly type: string;
  readonly kind?: string;
  readonly id?: string;
  readonly row?: object;
}

/** The states of a thing in a stream; several rows with one state are one. */
function sent(events: readonly Sent[], thing: string): States {
  return events
    .filter(({ kind, id }) => `${kind} ${id}` === thing)
    .map(({ row }) => (row === undefined ? null : (row as { state?: string }).state))
    .filter((state, at, all) => state !== all[at - 1]);
}

/** Whether all are in the other list, in their order. */
function isWithin(some: States, all: States): boolean {
  let at = -1;
  return some.every((one) => {
    at = all.indexOf(one, at + 1);
    return at >= 0;
  });
}

describe("REST v1 of a real process", () => {
  test("a client that is killed keeps its lease until its heartbeat's time is over, and no longer", async () => {
    const flags = ["--disable-warning=ExperimentalWarning", "--input-type=module", "-e", CLIENT];
    // Where its import is found.
    const cwd = import.meta.dirname;
    const client = spawn(process.execPath, [...flags, url, token], {
      cwd,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const id = await new Promise<string>((resolve) =>
      client.stdout.setEncoding("utf8").once("data", (text: string) => resolve(text.trim())),
    );
    const { expires } = await granted(id);
    await until("heartbeats came", async () => (await lease(id))!.expires > expires);
    client.kill("SIGKILL");
    await new Promise((resolve) => client.once("close", resolve));
    const last = await lease(id);
    await until("its nodes are returned", async () => (await lease(id)) === undefined);
    const [ended] = await until("the journal has it", () => {
      const found = journal().filter(({ event, lease: of }) => event === "lease.ended" && of === id);
      return found.length > 0 && found;
    });
    expect(ended!.facts).toMatchObject({ why: "expired" });
    // One machine, one clock: its end is at the moment that the last heartbeat set, or later.
    expect(ended!.at).toBeGreaterThanOrEqual(Math.floor(Date.parse(last!.expires)));
  });

  test("the example for Python's standard library leases nodes, keeps them while its command runs, and gives them back", async () => {
    const file = `${site.folder}/nodes.json`;
    // As a job that fails, once the test has looked.
    const job = `printf %s "$NODEYARD_NODES" > ${file}.new; mv ${file}.new ${file}; read line; exit 3`;
    const program = `${import.meta.dirname}/../../../../examples/python/use_nodes.py`;
    const env = { ...process.env, NODEYARD_URL: url, NODEYARD_TOKEN: token, HEARTBEAT_SECONDS: "10" };
    const client = spawn("python3", [program, "small", "large", "--", "sh", "-c", job], {
      env,
      stdio: ["pipe", "inherit", "inherit"],
    });
    const ended = new Promise((resolve) => client.once("close", resolve));
    const nodes = await until("the command runs", () => {
      if (client.exitCode !== null) throw new Error(`it ended with ${client.exitCode}`);
      return existsSync(file) && (JSON.parse(readFileSync(file, "utf8")) as readonly { id: string }[]);
    });
    const held = (await call<{ items: LeaseBody[] }>("/v1/leases?state=granted")).items.find(
      ({ nodes: [first] }) => first === nodes[0]!.id,
    );
    expect(held).toMatchObject({ nodes: nodes.map(({ id }) => id), labels: ["small", "large"] });
    await until("heartbeats came", async () => (await lease(held!.id))!.expires > held!.expires);
    client.stdin.write("go on\n");
    expect(await ended).toBe(3);
    await until("its nodes are returned", async () => (await lease(held!.id)) === undefined);
    const [last] = await until("the journal has it", () => {
      const found = journal().filter(({ event, lease: of }) => event === "lease.ended" && of === held!.id);
      return found.length > 0 && found;
    });
    expect(last!.facts).toMatchObject({ why: "released", verdict: "dirty" });
  });

  test.each(["SIGTERM", "SIGKILL"] as const)(
    "each transition in the journal reaches clients that stay while the server ends by %s again and again: once, and in order",
    async (signal) => {
      const former = transitions(journal());
      const [raw, auth] = [new EventClient(), { authorization: `Bearer ${token}` }];
      await raw.connect(url, "/v1/events", auth);
      const stop = new AbortController();
      const byClient: YardEvent[] = [];
      const follow = async () => {
        const events = connect(`${site.state}/http.sock`).events({}, { signal: stop.signal });
        for await (const event of events) byClient.push(event);
      };
      const followed = follow().catch((error: unknown) => error);
      await until("both follow", () => raw.count("synced") + byClient.length > 1);
      for (let round = 0; round < 3; round++) {
        const asked = await Promise.all(
          ["small", "small", "large"].map((label) => call<LeaseBody>("/v1/leases", { labels: [label] })),
        );
        await granted(asked[round]!.id);
        await call(`/v1/leases/${asked[round]!.id}/release`, { verdict: "ok" });
        await up.kill(signal);
        await raw.ended;
        // This process and the next have much to do, and much of it before a client is back.
        await start();
        const { items } = await call<{ items: LeaseBody[] }>("/v1/leases");
        await Promise.all(items.map(({ id }) => granted(id)));
        await Promise.all(items.map(({ id }) => call(`/v1/leases/${id}/release`, { verdict: "ok" })));
        await raw.connect(url, "/v1/events", auth);
      }
      const nothing = async () => (await call<{ items: object[] }>("/v1/nodes")).items.length === 0;
      await until("all nodes are gone", nothing);
      const wanted = new Map([...transitions(journal())].filter(([thing]) => !former.has(thing)));
      expect(wanted.size).toBeGreaterThan(15);
      for (const reported of [
        () => raw.reported.map(({ event, data }) => ({ ...data, type: event })),
        () => byClient,
      ]) {
        const missing = () =>
          [...wanted].filter(([thing, states]) => !isWithin(states, sent(reported(), thing)));
        await until("all is told", () => missing().length === 0).catch(() =>
          expect(missing().map(([thing, states]) => [thing, states, sent(reported(), thing)])).toEqual([]),
        );
        expect(reported().filter(({ type }) => type === "gap" || type === "synced")).toHaveLength(1);
      }
      const numbers = raw.reported.flatMap(({ id }) => (id === undefined ? [] : [Number(id.split(".")[1])]));
      expect(numbers).toEqual(numbers.map((_, index) => numbers[0]! + index));
      stop.abort(new Error("the test is over"));
      await followed;
      await raw.cut();
    },
  );

  test("the link that the command line prints logs one browser in, once", async () => {
    const link = new URL((await site.json<{ url: string }>("dashboard")).url);
    expect(link.origin).toBe(url);
    const logIn = () =>
      fetch(`${url}/v1/session`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ticket: link.hash.replace("#ticket=", "") }),
      });
    const reply = await logIn();
    expect(await reply.json()).toMatchObject({ name: "socket", role: "operator" });
    expect((await logIn()).status).toBe(401);
    cookie = reply.headers.get("set-cookie")!.split(";")[0]!;
  });

  test("a request that is repeated after kill -9 was made once, what was answered is in the audit, and browsers stay logged in", async () => {
    const requested = async () =>
      (await call<{ items: object[] }>("/v1/audit?action=create_lease")).items.length;
    const before = await requested();
    const [body, key] = [{ labels: ["small"] }, { "idempotency-key": "build-1" }];
    const first = await call<LeaseBody>("/v1/leases", body, key);
    await up.kill("SIGKILL");
    await start();
    const again = await call<LeaseBody>("/v1/leases", body, key);
    expect(again.id).toBe(first.id);
    expect((await fetch(`${url}/v1/session`, { headers: { cookie } })).status).toBe(200);
    await granted(first.id);
    expect(await requested()).toBe(before + 2);
    const grants = await until("the journal has it", () => {
      const found = journal().filter(({ event, lease: of }) => event === "lease.granted" && of === first.id);
      return found.length > 0 && found;
    });
    expect(grants).toHaveLength(1);
    expect(grants[0]!.facts).toMatchObject({ owner: "token:ci", nodes: [expect.any(String)] });
  });

  test("a lease for a job is found by the job while it lives and afterwards, and keeps what its client notes", async () => {
    const job = { system: "zuul", id: "org/unit#7", name: "unit", url: "https://ci.example.org/b/7" };
    const wish = { labels: ["small"], job, data: "first" };
    const { id } = await call<LeaseBody>("/v1/leases", wish);
    await expect(
      call("/v1/leases", { labels: ["small"], job: { ...job, url: "javascript:alert(1)" } }),
    ).rejects.toThrow(/400 .*job\.url/);
    await granted(id);
    const beat = (body?: object) => call<LeaseBody>(`/v1/leases/${id}/heartbeat`, body ?? {});
    expect(await beat({ data: "second" })).toMatchObject({ data: "second", job });
    expect(await beat()).toMatchObject({ data: "second" });
    await expect(beat({ data: "x".repeat(4_097) })).rejects.toThrow("400");
    const ids = async (query: string) =>
      (await call<{ items: LeaseBody[] }>(`/v1/leases?${query}`)).items.map((one) => one.id);
    expect(await ids(`job.id=${encodeURIComponent(job.id)}`)).toEqual([id]);
    expect(await ids("job.system=boskos")).toEqual([]);
    const explained = () =>
      call<{ id: string; state: string }>(`/v1/explain/job/${encodeURIComponent(job.id)}`);
    expect(await explained()).toMatchObject({ kind: "lease", id, state: "granted", about: { job } });
    expect((await site.run("explain", job.id)).code).toBe(2);
    expect((await site.run("explain", "job", job.id)).out).toContain(`lease ${id} is granted`);
    const plain = await call<LeaseBody>("/v1/leases", {
      labels: ["small"],
      job: { system: "zuul", id: "unit-8" },
    });
    const atAddress = (...words: readonly string[]) =>
      new Running(words, { NODEYARD_URL: url, NODEYARD_TOKEN: token }).ended;
    expect((await atAddress("explain", "unit-8")).out).toContain(`lease ${plain.id} is`);
    expect(await atAddress("explain", "unit-9")).toMatchObject({
      code: 1,
      err: expect.stringContaining("unit-9"),
    });
    await call(`/v1/leases/${plain.id}/release`, {});
    await call(`/v1/leases/${id}/release`, {});
    await until("it has ended", async () => (await ids(`id=${id}`)).length === 0);
    expect(await explained()).toMatchObject({ id, state: "gone" });
    await expect(call("/v1/explain/job/nothing")).rejects.toThrow("404");
  });

  test("a configuration is checked as the command line does it, and no variable of the environment is shown", async () => {
    const check = (text: string) =>
      call<{ valid: boolean; findings: readonly { line: number; message: string }[] }>("/v1/config/check", {
        text,
      });
    expect(await check(fakeConfig())).toMatchObject({ valid: true });
    const { valid, findings } = await check("labels:\n  - {name: a}\n  - 7\n");
    expect([valid, findings[0]!.line]).toEqual([false, 3]);
    expect(JSON.stringify(await check("zookeeper-timeout: '%(NODEPOOL_TEST_SECRET)'\n"))).not.toContain(
      "hidden",
    );
  });

  test("a configuration is planned with the demand of the journal, and one with errors is not", async () => {
    type Plan = { valid: boolean; requests: number; rows: { planned: object }[]; lost_count: number };
    const plan = (text: string) => call<Plan>("/v1/config/plan", { text });
    const same = await plan(fakeConfig());
    expect(same).toMatchObject({ valid: true, lost_count: 0, rows: expect.any(Array) });
    expect(same.requests).toBeGreaterThan(5);
    const less = await plan(fakeConfig({ labels: ["small"] }));
    expect(less.lost_count).toBeGreaterThan(0);
    expect(await plan("labels: 7\n")).toMatchObject({ valid: false, requests: 0, rows: [] });
    // The process went on with its work meanwhile.
    const id = await call<LeaseBody>("/v1/leases", { labels: ["small"] });
    await granted(id.id);
  });

  test("the audit is in the journal, and by the API", async () => {
    const { items } = await call<{ items: object[] }>("/v1/audit?action=release_lease");
    expect(items[0]).toMatchObject({ who: "token:ci", role: "operator", status: 204 });
    const made = journal().find(({ event }) => event === "token.changed");
    expect(made!.facts).toMatchObject({ token: "ci", state: "created", role: "operator" });
    expect(JSON.stringify(journal())).not.toContain(token.slice(-64));
    expect(up.err).toContain('"event":"api.called"');
  });

  test("a token that the command line revokes is good no more", async () => {
    const listed = await site.json<{ name: string; state: string }[]>("token", "list");
    expect(listed).toMatchObject([{ name: "ci", role: "operator", state: "valid" }]);
    expect((await site.run("token", "revoke", "ci")).code).toBe(0);
    await until("it is refused", async () => {
      const { status } = await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${token}` } });
      return status === 401;
    });
  });
});
