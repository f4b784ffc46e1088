import type { MemberAnswers, PoolOutlook, Testimony } from "@nodeyard/asking";
import {
  encodeComponent,
  encodeNode,
  encodeRequest,
  newComponent,
  newNode,
  newRequest,
  paths,
} from "@nodeyard/model";
import {
  type Explained,
  explain,
  type OperationHandles,
  type Story,
  toExplanation,
} from "@nodeyard/operations";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { verdictCodes } from "@nodeyard/scheduler";
import { createMemoryTree, ensurePath } from "@nodeyard/tree";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verdictMeaning } from "../../../pool/operations/src/explain/meaning.ts";
import { merge } from "../../../pool/operations/src/explain/member-replies.ts";
import { nextSteps } from "../../../pool/operations/src/explain/next-steps.ts";
import { explanationSchema } from "../../../pool/operations/test/explanation-schema.ts";
import { storyText } from "../src/story.ts";

const empty: Testimony = { wait: null, pools: [], underWay: [], events: [], problem: null };

function answer(hostname: string, testimony: Partial<Testimony>): MemberAnswers["answers"][number] {
  const leftOut = { events: 0, pools: 0 };
  return {
    v: 1,
    member: `${hostname}-1`,
    hostname,
    version: "1",
    leftOut,
    testimony: { ...empty, ...testimony },
  };
}

function outlook(fields: Partial<PoolOutlook>): PoolOutlook {
  return {
    pool: "cloud/main",
    provider: "cloud",
    outlook: "waits",
    code: "capacity.pool",
    facts: {},
    since: null,
    nextTry: null,
    position: null,
    waiting: 0,
    estimate: null,
    unknown: null,
    ...fields,
  };
}

const time = (ms: number) => new Date(ms).toISOString();
const estimate = (fromMs: number) =>
  ({ likelyMs: fromMs, fromMs, toMs: 2 * fromMs, launches: 4, uses: 0 }) as const;

let handles: OperationHandles;
beforeEach(async () => {
  const [clock, random] = [new VirtualClock(), seededRandom(5)];
  handles = { tree: createMemoryTree({ clock, random }).connect({ name: "explain" }), clock, random };
  for (const path of [paths.nodes, paths.requests, paths.requestsLock, paths.component("pool")])
    await ensurePath(handles.tree, path);
});
afterEach(() => handles.tree.close());

async function reported(subject: Explained, asked: Partial<MemberAnswers>): Promise<Story> {
  const whole = { answers: [], silent: [], ...asked };
  const history = merge(whole, { events: [], problem: "there is no journal here" });
  const story = await explain(handles, subject, async () => ({ asked: whole, history }));
  const shown = toExplanation(story!, "/state/journal.sqlite");
  // Each reply has the shape that programs rely on, and a person can read it.
  expect(explanationSchema.parse(JSON.parse(JSON.stringify(shown)))).toEqual(
    JSON.parse(JSON.stringify(shown)),
  );
  const text = storyText(shown, { journal: "/state/journal.sqlite", now: 0, columns: 80 });
  expect(text).not.toMatch(/undefined|NaN|\[object/);
  return story!;
}

async function request(labels: readonly string[]): Promise<Explained> {
  const record = newRequest({ state: "requested", nodeTypes: [...labels], requestor: "zuul" }, 100);
  await handles.tree.create(`${paths.requests}/200-0000000001`, encodeRequest(record));
  return { kind: "request", id: "200-0000000001" };
}

async function pool(id: string, labels: readonly string[], providerName = "cloud"): Promise<void> {
  const facts = { hostname: "here", kind: "pool", state: "running", id, providerName } as const;
  const record = newComponent({ ...facts, supportedLabels: [...labels] });
  await handles.tree.create(`${paths.component("pool")}/${id}`, encodeComponent(record));
}

const waits = (code: string, facts = {}) => ({ code, facts, since: 5_000, nextTry: null });

describe("a request, with what launchers say", () => {
  test("a reason that names a cause goes before one that only says that another launcher has to act", async () => {
    const subject = await request(["small"]);
    const answers = [
      answer("a", { wait: waits("declined.here") }),
      answer("b", {
        wait: waits("capacity.pool", { limit: 3 }),
        pools: [outlook({ position: 2, waiting: 5 })],
      }),
    ];
    const story = await reported(subject, { answers });
    expect(story.waits_for).toMatchObject({ code: "capacity.pool", since: time(5_000), source: "launcher" });
    expect(story.pools).toMatchObject([{ host: "b", position: 2, waiting: 5 }]);
  });

  test("a request that is being served says so before any other reason, and then that pool's estimate counts", async () => {
    const subject = await request(["small"]);
    const answers = [
      answer("a", { wait: waits("capacity.pool"), pools: [outlook({ estimate: estimate(1_000) })] }),
      answer("b", {
        wait: waits("handling"),
        pools: [
          outlook({ pool: "other/main", outlook: "serves", code: "handling", estimate: estimate(9_000) }),
        ],
      }),
    ];
    const story = await reported(subject, { answers });
    expect(story.waits_for?.code).toBe("handling");
    expect(story.estimate).toMatchObject({ from_seconds: 9, pool: "other/main" });
  });

  test("a failing cloud API is reported although no pool of it is registered", async () => {
    const subject = await request(["small"]);
    const failing = outlook({
      code: "provider.failing",
      facts: { error: "503", failing_since: 4_000 },
      since: 4_000,
      nextTry: 9_000,
    });
    const story = await reported(subject, {
      answers: [answer("a", { wait: waits("pools.none"), pools: [failing] })],
    });
    expect(story.waits_for).toMatchObject({
      code: "provider.failing",
      since: time(4_000),
      next_try: time(9_000),
      facts: { pool: "cloud/main", error: "503" },
    });
    expect(story.waits_for?.meaning).toMatch(/not about quota/);
    expect(storyText(toExplanation(story, ""), { journal: "", now: 10_000, columns: 80 })).toContain(
      "failing since   1970-01-01T00:00:04.000Z (6 s ago)",
    );
  });

  test("members that do not answer are named, on the terminal and in JSON", async () => {
    const subject = await request(["small"]);
    await pool("a", ["small"]);
    const story = await reported(subject, { silent: [{ member: "b-2", why: "no answer within 3 s" }] });
    expect(story.waits_for).toMatchObject({ code: "queue.next", source: "tree" });
    expect(storyText(toExplanation(story, ""), { journal: "", now: 0, columns: 80 })).toContain(
      "Did not answer: b-2 (no answer within 3 s).",
    );
    expect(toExplanation(story, "").members.silent).toEqual([{ member: "b-2", why: "no answer within 3 s" }]);
  });
});

test("histories of several members are merged: each event once, by time, with its writer", () => {
  const event = (at: number, name: string) => ({ at, event: name, request: "r", node: null, facts: { at } });
  const answers = [
    answer("a", { events: [event(1, "x"), event(5, "y")] }),
    answer("b", { events: [event(3, "z")], problem: "half of it is gone" }),
  ];
  const { events, problem } = merge(
    { answers, silent: [] },
    { events: [event(0, "old"), event(5, "y")], problem: null },
  );
  expect(events.map(({ event, by }) => [event, by])).toEqual([
    ["old", null],
    ["x", "a"],
    ["z", "b"],
    ["y", "a"],
  ]);
  expect(problem).toBeNull();
});

describe("a label", () => {
  const small: Explained = { kind: "label", id: "small" };

  test("that no pool offers and no record names is not found", async () => {
    await pool("a", ["large"]);
    expect(
      await explain(handles, small, async () => ({
        asked: {
          answers: [answer("a", { pools: [outlook({ outlook: "lacks", code: "pool.lacks-label" })] })],
          silent: [],
        },
        history: { events: [], problem: null },
      })),
    ).toBeUndefined();
  });

  test("which pool would serve it at once, which wait for what, and which do not offer it", async () => {
    await pool("a", ["small"]);
    await pool("b", ["large"]);
    const node = newNode({ state: "ready", type: ["small"], provider: "gone" }, 100);
    await handles.tree.create(`${paths.nodes}/0000000001`, encodeNode(node));
    const pools = [
      outlook({ outlook: "lacks", code: "pool.lacks-label", pool: "cloud/b" }),
      outlook({ code: "image.waits", facts: { image: "noble" }, pool: "cloud/c" }),
      outlook({ outlook: "can", code: "pool.can", facts: { launches: 1 }, estimate: estimate(4_000) }),
    ];
    const story = await reported(small, { answers: [answer("a", { pools })] });
    expect(story).toMatchObject({
      state: "served",
      waits_for: null,
      next: "cloud/main would serve a request for it at once, with a launch.",
      about: { pools_without_it: 1, nodes: { ready: 1 }, providers_not_served: ["gone"], requests_open: 0 },
    });
    expect(story.pools.map(({ pool }) => pool)).toEqual(["cloud/c", "cloud/main"]);
  });

  test("of several reasons the one that ends soonest is given", async () => {
    await pool("a", ["small"]);
    const pools = [
      outlook({ code: "provider.inert" }),
      outlook({ code: "offering.failing", facts: { kind: "transient" }, nextTry: 60_000, pool: "cloud/b" }),
    ];
    const story = await reported(small, { answers: [answer("a", { pools })] });
    expect(story).toMatchObject({
      state: "waiting",
      waits_for: { code: "offering.failing", next_try: time(60_000) },
    });
  });

  test.each([
    ["label.declined", [answer("a", { pools: [outlook({ outlook: "declines", code: "pool.declines" })] })]],
    ["label.unasked", []],
  ])("%s", async (code, answers) => {
    await pool("a", ["small"]);
    expect((await reported(small, { answers })).waits_for?.code).toBe(code);
  });

  test("label.unknown: its remaining records are listed", async () => {
    await request(["small"]);
    expect(await reported(small, {})).toMatchObject({
      state: "unserved",
      waits_for: { code: "label.unknown" },
    });
  });
});

test("every reason has a meaning and a next step in words", () => {
  for (const code of Object.keys(verdictCodes) as (keyof typeof verdictCodes)[]) {
    expect(verdictMeaning(code)?.length, code).toBeGreaterThan(15);
    expect(nextSteps[code].length, code).toBeGreaterThan(15);
  }
  expect(verdictMeaning("offering.failing", { kind: "transient" })).toMatch(/not for lack of quota/);
  expect(verdictMeaning("offering.failing", { kind: "capacity" })).toMatch(/no capacity/);
});
