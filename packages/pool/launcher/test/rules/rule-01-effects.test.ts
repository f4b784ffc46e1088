import { beforeEffect, fenceOf, mayAct } from "@nodeyard/coordination";
import { runSteps, type Step } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { seededRandom, sleep, VirtualClock } from "@nodeyard/runtime";
import { Fence, FenceLost, type Session, type SessionState, type Tree } from "@nodeyard/tree";
import type { ViewEvent } from "@nodeyard/view";
import { describe, expect, test } from "vitest";
import type { RequestHandles } from "../../src/nodes/handles.ts";
import { withMethods } from "./with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./world.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** A session and a view that say what they are told to. */
function parts() {
  const clock = new VirtualClock();
  const session: Mutable<Session> = { id: 1n, epoch: 1, state: "connected", trustedUntil: 6_667 };
  const view = { complete: true };
  const listeners = new Set<(event: never) => void>();
  const on = (listener: (event: never) => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  let syncs = 0;
  const tree = {
    session: () => session,
    onSession: on,
    sync: async () => {
      syncs++;
      session.trustedUntil = clock.monotonic() + 6_667;
    },
  } as unknown as Tree;
  const fence = new Fence(tree, clock, seededRandom(1));
  const handles = {
    tree,
    clock,
    fence,
    view: Object.assign(view, { onEvent: on }),
  } as unknown as RequestHandles;
  const held = { parent: "/l", contender: "/l/c", epoch: 1 };
  const tell = (change: { state?: SessionState; epoch?: number; complete?: boolean }) => {
    const { complete = view.complete, ...rest } = change;
    Object.assign(session, rest);
    view.complete = complete;
    const event: ViewEvent = { type: "complete", complete };
    for (const listener of [...listeners]) listener(event as never);
  };
  let settled = "waits";
  const ask = () => {
    settled = "waits";
    beforeEffect(handles, held).then(
      () => {
        settled = "may";
      },
      (error: unknown) => {
        settled = error instanceof FenceLost ? "lost" : `${error}`;
      },
    );
    return clock.advance(1);
  };
  const state = () => settled;
  return { clock, session, handles, tell, ask, state, syncs: () => syncs, listeners };
}

describe("rule 1: before an outside effect", () => {
  test("effects need a connection, a complete view and a trusted session", () => {
    const { handles, session, tell } = parts();
    expect(mayAct(handles)).toBe(true);
    tell({ state: "suspended" });
    expect(mayAct(handles)).toBe(false);
    tell({ state: "connected", complete: false });
    expect(mayAct(handles)).toBe(false);
    tell({ complete: true });
    session.trustedUntil = 0;
    expect(mayAct(handles)).toBe(false);
  });

  test("nothing begins while the connection is down or the view compares itself, and it goes on after", async () => {
    for (const [gone, back] of [
      [{ state: "suspended" }, { state: "connected" }],
      [{ complete: false }, { complete: true }],
    ] as const) {
      const { tell, ask, state, clock, listeners } = parts();
      tell(gone);
      await ask();
      await clock.advance(3_000);
      expect(state()).toBe("waits");
      tell(back);
      await clock.advance(1);
      expect(state()).toBe("may");
      expect(listeners.size).toBe(0);
    }
  });

  test("no effect begins under a session that ended, and no wait is longer than a minute", async () => {
    const { tell, ask, state, clock } = parts();
    tell({ state: "suspended" });
    await ask();
    tell({ state: "connected", epoch: 2 });
    await clock.advance(1);
    expect(state()).toBe("lost");
    tell({ state: "suspended", epoch: 1 });
    await ask();
    await clock.advance(60_001);
    expect(state()).toBe("lost");
  });

  test("where only trust is lacking, the tree is asked once whether the session lives", async () => {
    const { ask, state, clock, syncs } = parts();
    await clock.advance(6_700);
    await ask();
    expect(state()).toBe("may");
    expect(syncs()).toBe(1);
  });

  test("the lock's own session is asked for at the end, too", async () => {
    const { ask, state, session } = parts();
    session.epoch = 2;
    await ask();
    expect(state()).toBe("lost");
  });

  test("each step of a driver is an effect; one that may not begin is not entered, and the driver's clean-up runs", async () => {
    const entered: string[] = [];
    async function* steps(): AsyncGenerator<Step, string, void> {
      try {
        for (const step of ["one", "two", "three"]) {
          entered.push(step);
          yield { step, deadlineMs: 1 };
        }
        return "made";
      } finally {
        entered.push("closed");
      }
    }
    let allowed = 2;
    const before = async () => {
      if (allowed-- <= 0) throw new FenceLost("it");
    };
    const { signal } = new AbortController();
    const run = runSteps(steps, {
      ...{ clock: new VirtualClock(), signal, externalId: null },
      ...{ before, save: async () => {} },
    });
    expect(fenceOf(await run.catch((error: unknown) => error))).toBeInstanceOf(FenceLost);
    expect(entered).toEqual(["one", "two", "closed"]);
  });

  test("no step begins once the run was abandoned, however late what precedes it resolves", async () => {
    const entered: string[] = [];
    async function* steps(): AsyncGenerator<Step, void, void> {
      yield { step: "one", deadlineMs: 1_000 };
      entered.push("one");
    }
    const slow = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    slow[0]!.resolve();
    let waits = 0;
    const stop = new AbortController();
    const clock = new VirtualClock();
    const run = runSteps(steps, {
      ...{ clock, signal: stop.signal, externalId: null },
      ...{ before: () => slow[waits++]!.promise, save: async () => {} },
    });
    run.catch(() => undefined);
    await clock.advance(1);
    stop.abort(new Error("given up"));
    await clock.advance(60_000);
    await expect(run).rejects.toThrow("given up");
    slow[1]!.resolve();
    await clock.advance(1);
    expect(entered).toEqual([]);
  });
});

/** A driver whose launches and deletions begin with many steps that store nothing: only the fence can stop them. */
function inManySteps(world: World, began: number[]) {
  async function* many(): AsyncGenerator<Step, void, void> {
    for (let step = 0; step < 20; step++) {
      yield { step: `step ${step}`, deadlineMs: 60_000 };
      began.push(world.clock.monotonic());
      await sleep(world.clock, 200);
    }
  }
  return withMethods((inner) => ({
    async *create(...args) {
      yield* many();
      return yield* inner.create(...args);
    },
    async *remove(...args) {
      yield* many();
      return yield* inner.remove(...args);
    },
  }));
}

test.each(["launch", "deletion"])(
  "rule 1: a %s of many steps stands still at the next one while the connection is down",
  async (what) => {
    const world = new World();
    const began: number[] = [];
    const { tree } = await world.start("a", launcherConfig([fakeProvider()]), {
      wrap: inManySteps(world, began),
      sessionTimeoutMs: 60_000,
    });
    const id = await world.ask();
    if (what === "deletion") {
      await world.fulfilled(id);
      await world.use(id);
      began.length = 0;
    }
    await world.until("it is under way", () => began.length > 3);
    tree.disconnect(true);
    const before = began.length;
    await world.run(10_000);
    expect(began.length).toBe(before);
    tree.reconnect();
    if (what === "launch") await world.fulfilled(id);
    else await world.until("the node is gone", () => world.nodes().length === 0);
    expect(began).toHaveLength(20);
  },
);

/** A launch whose machine boots for so long that it is the last step. */
async function booting() {
  const world = new World();
  const { knobs } = world.cloud;
  const boot = { minMs: 20_000, maxMs: 20_000 };
  world.cloud.adjust({ ...knobs, latency: { ...knobs.latency, boot } });
  const member = await world.start("a", launcherConfig([fakeProvider()]));
  const id = await world.ask();
  await world.until("the machine boots", () => world.cloud.inspect().length > 0);
  await world.run(500);
  return { world, id, ...member };
}

test("rule 1: the step of a driver that is under way when the session ends is aborted", async () => {
  const { world, id, tree, journal } = await booting();
  tree.expire();
  const error = "the session with the tree ended";
  await world.until(
    "the step ends",
    () => journal.events.some(({ facts }) => facts.step === "wait" && facts.error === error),
    1_000,
  );
  await world.fulfilled(id);
});

test("rule 1: a launch whose lock was lost has not failed: its request is served with another node", async () => {
  const { world, id, journal, counters } = await booting();
  const [{ id: node }] = world.nodes() as [{ id: string }];
  for (const name of world.children(paths.nodeLock(node)))
    await world.settle(world.other.delete(`${paths.nodeLock(node)}/${name}`));
  const { nodes } = await world.fulfilled(id);
  expect(nodes).not.toContain(node);
  expect(journal.events.map(({ event }) => event)).not.toContain("node.launch-failed");
  expect(counters.value("launcher.unexpected")).toBe(0);
});
