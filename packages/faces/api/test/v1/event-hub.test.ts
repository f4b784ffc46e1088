import { encodeNode, newNode } from "@nodeyard/model";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import type { View, ViewEvent } from "@nodeyard/view";
import fc from "fast-check";
import { expect, test } from "vitest";
import { NodeTable } from "../../../../pool/view/src/node-table.ts";
import { EventHub, type Follower } from "../../src/v1/event-hub.ts";
import { KIND_NAMES } from "../../src/v1/kinds.ts";
import { BY_SOCKET, principalOf } from "../../src/v1/principal.ts";

/** A view of nodes alone. */
function fakeView() {
  const nodes = new NodeTable();
  let listener: (event: ViewEvent) => void = () => {};
  const empty = { byId: new Map() };
  const view = {
    nodes,
    requests: empty,
    own: new Map(),
    components: new Map(),
    images: { names: () => [] },
    standings: { list: () => [] },
    complete: true,
    onEvent(given: typeof listener) {
      listener = given;
      return () => {};
    },
  } as unknown as View;
  const emit = (event: ViewEvent | undefined) => event && listener(event);
  return {
    view,
    put: (id: number, version: number) => {
      const record = newNode({ type: ["small"], hostname: `version ${version}` }, 1_700_000_000);
      emit(nodes.put(`node-${id}`, encodeNode(record), version));
    },
    /** A record of Nodeyard's own that is no thing of a list. */
    other: (path: string) => emit({ type: "own", path } as ViewEvent),
    remove: (id: number) => emit(nodes.remove(`node-${id}`)),
    picture: () => new Map([...nodes.byId].map(([id, { record }]) => [id, record.hostname])),
  };
}

/** A client that takes some texts and then none until it is asked to. */
function slowClient(follow: (follower: Follower) => void, from?: string, newestOnly = false) {
  const picture = new Map<string, unknown>();
  const puts: unknown[] = [];
  let [gaps, taken, room] = [0, 0, 0];
  let last = "";
  let resume: (() => void) | undefined;
  follow({
    principal: principalOf(BY_SOCKET),
    kinds: new Set(KIND_NAMES),
    filters: [],
    brief: false,
    newestOnly,
    last: from,
    admitted: () => true,
    sink: {
      write(text) {
        taken++;
        for (const block of String(text).split("\n\n")) {
          last = /^id: (.*)$/m.exec(block)?.[1] ?? last;
          const event = /^event: (.*)$/m.exec(block)?.[1];
          const data = /^data: (.*)$/m.exec(block)?.[1];
          if (event === undefined || data === undefined) continue;
          const { id, row } = JSON.parse(data);
          if (event === "put") puts.push(row.hostname);
          if (event === "put") picture.set(id, row.hostname);
          else if (event === "remove") picture.delete(id);
          else if (event === "gap") {
            gaps++;
            picture.clear();
          }
        }
        return --room > 0;
      },
      onDrain(then) {
        resume = then;
      },
      onClose() {},
      end() {},
    },
  });
  return {
    picture,
    puts,
    gaps: () => gaps,
    last: () => last,
    taken: () => taken,
    /** Takes as many texts from now on. */
    take(texts: number) {
      room = texts;
      const then = resume;
      resume = undefined;
      then?.();
    },
  };
}

test("a client that does not read gets a gap, and all rows again when it reads on", async () => {
  const { view, put, picture } = fakeView();
  const clock = new VirtualClock();
  const hub = new EventHub(view, { clock, random: seededRandom(1) });
  put(1, 1);
  const client = slowClient((follower) => hub.follow(follower));
  const before = client.taken();
  for (let at = 0; at < 20_000; at++) put(at % 50, at);
  await clock.advance(1_000);
  // Nothing is kept for it.
  expect(client.taken()).toBe(before);
  client.take(Number.POSITIVE_INFINITY);
  await clock.advance(1_000);
  expect(client.gaps()).toBe(1);
  expect(client.picture).toEqual(picture());
  put(1, 99_999);
  await clock.advance(1_000);
  expect(client.picture).toEqual(picture());
  expect(client.gaps()).toBe(1);
});

test.each(["/nodeyard/tokens/ci", "/nodeyard/logins/0123456789ab"])(
  "a client that lost its right gets nothing after the change of %s, not even queued events",
  (path) => {
    const { view, other } = fakeView();
    const hub = new EventHub(view, { clock: new VirtualClock(), random: seededRandom(1) });
    let [admitted, ended] = [true, false];
    slowClient((follower) =>
      hub.follow({
        ...follower,
        admitted: () => admitted,
        sink: {
          ...follower.sink,
          end() {
            ended = true;
          },
        },
      }),
    );
    other(path);
    expect([hub.size, ended]).toEqual([1, false]);
    admitted = false;
    other("/nodeyard/slots/a/b");
    expect([hub.size, ended]).toEqual([1, false]);
    other(path);
    expect([hub.size, ended]).toEqual([0, true]);
  },
);

test("a client that comes back goes on where it was while that is kept, and else begins again", async () => {
  const { view, put, picture } = fakeView();
  const clock = new VirtualClock();
  const hub = new EventHub(view, { clock, random: seededRandom(1) });
  put(1, 1);
  const first = slowClient((follower) => hub.follow(follower));
  first.take(Number.POSITIVE_INFINITY);
  for (let at = 0; at < 100; at++) put(at, at);
  await clock.advance(1_000);
  const from = first.last();
  put(1, 101);
  const soon = slowClient((follower) => hub.follow(follower), from);
  soon.take(Number.POSITIVE_INFINITY);
  await clock.advance(1_000);
  expect([soon.gaps(), [...soon.picture]]).toEqual([0, [["node-1", "version 101"]]]);
  first.take(0);
  for (let at = 0; at < 12_000; at++) put(at % 50, 200 + at);
  const late = slowClient((follower) => hub.follow(follower), from);
  late.take(Number.POSITIVE_INFINITY);
  await clock.advance(1_000);
  expect([late.gaps(), late.picture]).toEqual([1, picture()]);
  for (const nonsense of ["", "x", `ffffffff.${from.split(".")[1]}`, `${from}9999`]) {
    const client = slowClient((follower) => hub.follow(follower), nonsense);
    client.take(Number.POSITIVE_INFINITY);
    await clock.advance(1_000);
    expect([nonsense, client.gaps(), client.picture]).toEqual([nonsense, 1, picture()]);
  }
});

test("a client that wants only the newest states gets one event for several changes; others get each change", async () => {
  const { view, put, remove } = fakeView();
  const clock = new VirtualClock();
  const hub = new EventHub(view, { clock, random: seededRandom(1) });
  put(0, 0);
  const [each, newest] = [false, true].map((only) => {
    const client = slowClient((follower) => hub.follow(follower), undefined, only);
    client.take(Number.POSITIVE_INFINITY);
    return client;
  });
  for (const version of [1, 2, 3]) put(1, version);
  remove(0);
  put(2, 1);
  // A client that comes now has seen node 2, and learns that it is gone.
  const late = slowClient((follower) => hub.follow(follower), undefined, true);
  late.take(Number.POSITIVE_INFINITY);
  remove(2);
  await clock.advance(1_000);
  expect(each!.puts).toEqual(["version 0", "version 1", "version 2", "version 3", "version 1"]);
  // A client that comes ends what counts as one change: node 2 had its first state then.
  expect(newest!.puts).toEqual(["version 0", "version 3", "version 1"]);
  for (const { picture } of [each!, newest!, late]) expect([...picture]).toEqual([["node-1", "version 3"]]);
  // A place in the one order is none in the other.
  const other = slowClient((follower) => hub.follow(follower), newest!.last());
  expect(other.gaps()).toBe(1);
});

/** So many clients of the newest states, all of which take everything; what each was sent. */
function crowdOfClients(hub: EventHub, count: number): readonly (readonly (string | Uint8Array)[])[] {
  return Array.from({ length: count }, () => {
    const sent: (string | Uint8Array)[] = [];
    slowClient((follower) =>
      hub.follow({
        ...follower,
        sink: { ...follower.sink, write: (text) => sent.push(text) > 0 },
        newestOnly: true,
      }),
    );
    return sent;
  });
}

const putsIn = (sent: readonly (string | Uint8Array)[]) =>
  sent.reduce((sum, text) => sum + String(text).split("event: put\n").length - 1, 0);

test("a crowd of changes costs each of twenty clients a few rows of a thing, and its text is made once", async () => {
  const { view, put } = fakeView();
  const clock = new VirtualClock();
  const hub = new EventHub(view, { clock, random: seededRandom(1) });
  const clients = crowdOfClients(hub, 20);
  for (let state = 0; state < 20; state++) {
    for (let id = 0; id < 400; id++) put(id, 1_000 * state + id);
    await clock.advance(100);
  }
  await clock.advance(1_000);
  for (const sent of clients) {
    // Two seconds of 400 things that change ten times a second: every 800 ms, and at the beginning and the end.
    expect(putsIn(sent)).toBeLessThanOrEqual(400 * 5);
    expect(String(sent.at(-1))).toContain("version 19399");
    expect(sent.every((text, at) => text === clients[0]![at])).toBe(true);
  }
  // Few changes are sent as soon as ever.
  const before = clients[0]!.length;
  for (let change = 1; change <= 10; change++) {
    put(1, 20_000 + change);
    await clock.advance(100);
  }
  expect(clients[0]!.length - before).toBe(10);
});

test("a client that is a little behind is sent the bytes that were made for the others", async () => {
  const { view, put } = fakeView();
  const clock = new VirtualClock();
  const hub = new EventHub(view, { clock, random: seededRandom(1) });
  const [quick, slow] = crowdOfClients(hub, 2) as [Uint8Array[], Uint8Array[]];
  let isFull = false;
  let resume = () => {};
  const late: (string | Uint8Array)[] = [];
  slowClient((follower) =>
    hub.follow({
      ...follower,
      newestOnly: true,
      sink: {
        ...follower.sink,
        write: (text) => late.push(text) > 0 && !isFull,
        onDrain: (then) => {
          resume = then;
        },
      },
    }),
  );
  isFull = true;
  for (let change = 1; change <= 3; change++) {
    put(change, change);
    await clock.advance(100);
  }
  isFull = false;
  resume();
  expect([slow.at(-2) === quick.at(-2), late.at(-2) === quick.at(-2), late.at(-1) === quick.at(-1)]).toEqual([
    true,
    true,
    true,
  ]);
});

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ put: fc.nat(30) }) },
  { weight: 2, arbitrary: fc.record({ remove: fc.nat(30) }) },
  fc.record({ crowd: fc.constantFrom(10, 1_000, 6_000) }),
  fc.record({ take: fc.nat(5) }),
  fc.record({ wait: fc.nat(300) }),
);

test.each([false, true])(
  "whenever it takes what, in the end it has the true picture (newest only: %s)",
  async (newestOnly) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { view, put, remove, picture } = fakeView();
        const clock = new VirtualClock();
        const hub = new EventHub(view, { clock, random: seededRandom(1) });
        const client = slowClient((follower) => hub.follow(follower), undefined, newestOnly);
        let version = 0;
        for (const one of steps) {
          if ("put" in one) put(one.put, ++version);
          else if ("remove" in one) remove(one.remove);
          else if ("crowd" in one) for (let at = 0; at < one.crowd; at++) put(at % 40, ++version);
          else if ("take" in one) client.take(one.take);
          else await clock.advance(one.wait);
        }
        client.take(Number.POSITIVE_INFINITY);
        await clock.advance(1_000);
        expect(client.picture).toEqual(picture());
      }),
      { numRuns: 60, seed: 7 },
    );
  },
);
