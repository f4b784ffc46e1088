import { askConsole } from "@nodeyard/operations";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { Counters, memoryLog } from "@nodeyard/telemetry";
import { createMemoryTree, type Tree } from "@nodeyard/tree";
import { View } from "@nodeyard/view";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type About, Answerer, askMembers, type Testimony } from "../src/index.ts";

const random = seededRandom(7);
const nothing: Testimony = { wait: null, pools: [], underWay: [], events: [], problem: null };

let clock: VirtualClock;
let store: ReturnType<typeof createMemoryTree>;
let asker: Tree;
let log: ReturnType<typeof memoryLog>;
let views: View[];

beforeEach(async () => {
  clock = new VirtualClock();
  store = createMemoryTree({ clock, random });
  asker = store.connect({ name: "asker" });
  log = memoryLog();
  views = [];
});
afterEach(async () => {
  for (const view of views) await view.close();
});

/** A member that answers with `answer`; without it, one that is stuck. */
async function member(name: string, answer?: (about: About) => Promise<Testimony>): Promise<Tree> {
  const tree = store.connect({ name });
  for (const path of ["/nodeyard", "/nodeyard/members"]) await tree.create(path).catch(() => {});
  await tree.create(`/nodeyard/members/${name}`, Buffer.from("{}"), { ephemeral: true });
  if (answer === undefined) return tree;
  const view = new View({ tree, clock, random, log, counters: new Counters() });
  views.push(view);
  const answerer = new Answerer({
    tree,
    clock,
    log,
    now: () => clock.now() + tree.clockOffset(),
    member: () => name,
    hostname: `${name}.example`,
    version: "1.2.3",
    answer,
  });
  view.onEvent((event) => answerer.onEvent(event));
  await run(view.start());
  return tree;
}

/** Lets the work go on, time included, until it is done. */
async function run<T>(work: Promise<T>): Promise<T> {
  let done = false;
  const end = () => {
    done = true;
  };
  work.then(end, end);
  while (!done) await clock.advance(50);
  return work;
}

async function left(): Promise<readonly string[]> {
  const folders = ["/nodeyard/asks", "/nodeyard/answers"];
  return (await Promise.all(folders.map((path) => run(asker.children(path))))).flatMap((names) =>
    [...names].sort(),
  );
}

test("every member is asked; members that do not answer are named; no znode is left behind", async () => {
  const seen: About[] = [];
  const answer = (problem: string) => async (about: About) => {
    seen.push(about);
    return { ...nothing, problem };
  };
  await member("a", answer("of a"));
  await member("b", answer("of b"));
  await member("stuck");
  const before = clock.now();
  const { answers, silent } = await run(
    askMembers({ tree: asker, clock }, { request: "200-0000000001" }, 3_000),
  );
  expect(clock.now() - before).toBeGreaterThanOrEqual(3_000);
  expect(answers.map(({ member, hostname, testimony }) => [member, hostname, testimony.problem])).toEqual([
    ["a", "a.example", "of a"],
    ["b", "b.example", "of b"],
  ]);
  expect(silent).toEqual([{ member: "stuck", why: "no answer within 3 s" }]);
  expect(seen).toEqual([{ request: "200-0000000001" }, { request: "200-0000000001" }]);
  expect(await left()).toEqual([]);
});

test("it waits no longer than for the last answer", async () => {
  await member("a", async () => nothing);
  const before = clock.now();
  const { answers, silent } = await run(askMembers({ tree: asker, clock }, { node: "1" }, 3_000));
  expect([answers.length, silent]).toEqual([1, []]);
  expect(clock.now() - before).toBeLessThan(1_000);
});

test("a console is waited for no longer than for the first one, or for what the launcher of the node says", async () => {
  const end = (problem: string | null) => ({ lines: problem === null ? ["boots"] : [], cut: false, problem });
  const saying = (problem: string | null) => async () => ({ ...nothing, console: end(problem) });
  const none = await run(
    askConsole({ tree: asker, clock, random }, { id: "0000000001", launcher: null, provider: "cloud" }),
  );
  expect(none).toEqual({ lines: [], cut: false, problem: "no launcher that serves cloud answers" });
  await member("stuck");
  await member("a", saying("its cloud is away"));
  const asked = async (launcher: string | null) => {
    const before = clock.now();
    const found = await run(
      askConsole({ tree: asker, clock, random }, { id: "0000000001", launcher, provider: "cloud" }),
    );
    return [found, clock.now() - before < 1_000];
  };
  const launcher = (host: string) => `${host}-PoolWorker.cloud-main-${"0".repeat(32)}`;
  expect(await asked(launcher("b.example"))).toEqual([end("its cloud is away"), false]);
  expect(await asked(launcher("a.example"))).toEqual([end("its cloud is away"), true]);
  await member("c", saying(null));
  expect(await asked(null)).toEqual([end(null), true]);
  expect(await left()).toEqual([]);
});

test("without members nothing is written", async () => {
  expect(await run(askMembers({ tree: asker, clock }, { node: "1" }, 3_000))).toEqual({
    answers: [],
    silent: [],
  });
  expect(await run(asker.children("/"))).not.toContain("nodeyard");
});

test("what is ready too late is never put into the tree", async () => {
  const slow = Promise.withResolvers<Testimony>();
  await member("slow", () => slow.promise);
  const { silent } = await run(askMembers({ tree: asker, clock }, { node: "1" }, 500));
  expect(silent).toMatchObject([{ member: "slow" }]);
  slow.resolve(nothing);
  await clock.advance(100);
  expect(await left()).toEqual([]);
});

test("an answer to an asker that died is taken back by its member", async () => {
  await member("a", async () => nothing);
  for (const path of ["/nodeyard/asks", "/nodeyard/answers"]) await run(asker.create(path));
  const dying = store.connect({ name: "dying" });
  const ask = Buffer.from(JSON.stringify({ v: 1, about: { node: "1" }, withinMs: 60_000 }));
  await run(dying.create("/nodeyard/asks/", ask, { ephemeral: true, sequential: true }));
  await clock.advance(100);
  expect(await left()).toEqual(["0000000000", "0000000000-a"]);
  await run(dying.close());
  await clock.advance(100);
  expect(await left()).toEqual([]);
});

test("a question that is gone before its answer is ready gets none, not even for a moment", async () => {
  const slow = Promise.withResolvers<Testimony>();
  await member("slow", () => slow.promise);
  for (const path of ["/nodeyard/asks", "/nodeyard/answers"]) await run(asker.create(path));
  const put: string[] = [];
  const feed = asker.feed("/nodeyard/answers", {
    interest: () => "name",
    onChange: (change) => void (change.type === "put" && put.push(change.path)),
  });
  await run(feed.synced);
  const ask = Buffer.from(JSON.stringify({ v: 1, about: {}, withinMs: 60_000 }));
  await run(asker.create("/nodeyard/asks/q", ask));
  await run(asker.delete("/nodeyard/asks/q"));
  slow.resolve(nothing);
  await clock.advance(1_000);
  expect(put.filter((path) => path !== "/nodeyard/answers")).toEqual([]);
  await run(feed.close());
});

test("a durable question is answered until its time is over, and the answer goes then", async () => {
  let asked = 0;
  for (const path of ["/nodeyard", "/nodeyard/asks", "/nodeyard/answers"]) await run(asker.create(path));
  const ask = Buffer.from(JSON.stringify({ v: 1, about: {}, withinMs: 1_000 }));
  await run(asker.create("/nodeyard/asks/old", ask));
  await clock.advance(5_000);
  await member("a", async () => {
    asked++;
    return nothing;
  });
  await run(asker.create("/nodeyard/asks/new", ask));
  await clock.advance(100);
  expect(await left()).toEqual(["new", "old", "new-a"]);
  await clock.advance(3_000);
  expect(await left()).toEqual(["new", "old"]);
  expect(asked).toBe(1);
});

test("invalid questions and answers stop no member", async () => {
  await member("a", async () => nothing);
  const rogue = await member("rogue");
  for (const path of ["/nodeyard/asks", "/nodeyard/answers"]) await run(asker.create(path));
  for (const [at, text] of ["", "{", '{"v":2}', '{"v":1,"about":{},"withinMs":-1}'].entries())
    await run(asker.create(`/nodeyard/asks/bad-${at}`, Buffer.from(text)));
  await clock.advance(100);
  expect(log.lines.filter(({ level }) => level === "warn")).toHaveLength(4);
  const { promise: seen, resolve } = Promise.withResolvers<string>();
  rogue.feed("/nodeyard/asks", {
    interest: () => "name",
    onChange: (change) => {
      if (change.type === "put" && /\d{10}$/.test(change.path)) resolve(change.path.slice(-10));
    },
  });
  const asking = askMembers({ tree: asker, clock }, { node: "1" }, 3_000);
  await run(
    rogue.create(`/nodeyard/answers/${await run(seen)}-rogue`, Buffer.from("[]"), { ephemeral: true }),
  );
  const { answers, silent } = await run(asking);
  expect(answers.map(({ member }) => member)).toEqual(["a"]);
  expect(silent).toMatchObject([{ member: "rogue", why: expect.stringContaining("cannot be read") }]);
});
