import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeNode, encodeRequest, newNode, newRequest } from "@nodeyard/model";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { memoryLog } from "@nodeyard/telemetry";
import type { View, ViewEvent } from "@nodeyard/view";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { NodeTable } from "../../../../pool/view/src/node-table.ts";
import { RequestTable } from "../../../../pool/view/src/request-table.ts";
import { EVENTS, EventFile } from "../../src/edge/event-file.ts";
import { EventHub } from "../../src/v1/event-hub.ts";
import { KIND_NAMES } from "../../src/v1/kinds.ts";
import { BY_SOCKET, principalOf } from "../../src/v1/principal.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-events-"));
  file = join(folder, EVENTS);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What a client was sent: `kind id`, and the version that the row shows; null: removed. */
type Change = readonly [id: string, version: string | null, skipped: boolean];

/** A tree that outlives processes, and the process that looks at it now. */
function world(seed = 1) {
  const nodes = new NodeTable();
  const requests = new RequestTable();
  const clock = new VirtualClock();
  const random = seededRandom(seed);
  const log = memoryLog();
  let listener: ((event: ViewEvent) => void) | undefined;
  const view = {
    nodes,
    requests,
    own: new Map(),
    components: new Map(),
    images: { names: () => [] },
    standings: { list: () => [] },
    complete: true,
    onEvent(given: NonNullable<typeof listener>) {
      listener = given;
      return () => {};
    },
  } as unknown as View;
  const boot = () => new EventHub(view, { clock, random, stored: { file: new EventFile(file), log } });
  let hub = boot();
  const versions = new Map<string, number>();
  const isNode = (id: string) => !id.startsWith("100-");
  return {
    clock,
    log,
    get size() {
      return versions.size;
    },
    /** Without a process (`away`), a change is told to nobody. */
    put(id: string, away = false) {
      const version = (versions.get(id) ?? -1) + 1;
      versions.set(id, version);
      const name = `version ${version}`;
      const event = isNode(id)
        ? nodes.put(id, encodeNode(newNode({ type: ["small"], hostname: name }, 1)), version)
        : requests.put(id, encodeRequest(newRequest({ nodeTypes: ["small"], requestor: name }, 1)), version);
      if (!away) listener?.(event!);
      return [id, name, false] as Change;
    },
    remove(id: string, away = false) {
      if (!versions.delete(id)) return undefined;
      const event = isNode(id) ? nodes.remove(id) : requests.remove(id);
      if (!away) listener?.(event!);
      return [id, null, false] as Change;
    },
    /** Kills the process: nothing is closed, and nothing more is sent. */
    kill() {
      listener = undefined;
    },
    restart() {
      hub = boot();
    },
    follow(last?: string) {
      const reported: Change[] = [];
      const ids: string[] = [];
      const state = { gaps: 0, last: last ?? "" };
      hub.follow({
        principal: principalOf(BY_SOCKET),
        kinds: new Set(KIND_NAMES),
        filters: [],
        brief: false,
        newestOnly: false,
        last,
        admitted: () => true,
        sink: {
          write(text) {
            for (const block of String(text).split("\n\n")) {
              const id = /^id: (.*)$/m.exec(block)?.[1];
              if (id !== undefined) ids.push(id);
              state.last = id ?? state.last;
              const event = /^event: (.*)$/m.exec(block)?.[1];
              if (event === "gap") state.gaps++;
              if (event !== "put" && event !== "remove") continue;
              const data = JSON.parse(/^data: (.*)$/m.exec(block)![1]!);
              const shown = data.row?.hostname ?? data.row?.requestor ?? null;
              reported.push([data.id, shown, data.skipped === true]);
            }
            return true;
          },
          onDrain() {},
          onClose() {},
          end() {},
        },
      });
      return { reported, ids, state };
    },
  };
}

const [R1, R2] = ["100-0000000001", "100-0000000002"];
const numberOf = (id: string) => Number(id.split(".")[1]);

test("each change before a kill, and after it, is sent once and in order to a client that comes back", async () => {
  type Step = readonly ["put" | "remove", string] | readonly ["kill" | "wait", null];
  const thing = fc.constantFrom("n1", "n2", "n3", R1, R2);
  const step: fc.Arbitrary<Step> = fc.oneof(
    { arbitrary: fc.tuple(fc.constant("put" as const), thing), weight: 6 },
    { arbitrary: fc.tuple(fc.constant("remove" as const), thing), weight: 2 },
    { arbitrary: fc.tuple(fc.constantFrom("kill" as const, "wait" as const), fc.constant(null)), weight: 2 },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.nat(40), async (steps, at) => {
      rmSync(file, { force: true });
      rmSync(`${file}.1`, { force: true });
      const site = world();
      const client = site.follow();
      const wanted: Change[] = [];
      let last: string | undefined;
      for (const [number, [what, id]] of steps.entries()) {
        // From here on the client is away; what it has is the beginning of what it is to have.
        if (number === at) {
          await site.clock.advance(1_000);
          last = client.state.last;
        }
        if (what === "put") wanted.push(site.put(id));
        else if (what === "remove") wanted.push(...[site.remove(id)].filter((one) => one !== undefined));
        // The writer's turn ends before the process does.
        await site.clock.advance(what === "wait" ? 1_000 : 1);
        if (what !== "kill") continue;
        last ??= client.state.last;
        site.kill();
        site.restart();
      }
      last ??= client.state.last;
      const again = site.follow(last);
      await site.clock.advance(1_000);
      const known = client.ids.indexOf(last);
      expect(again.state.gaps).toBe(0);
      const before = client.reported.slice(0, client.reported.length - (client.ids.length - 1 - known));
      expect([...before, ...again.reported]).toEqual(wanted);
      const numbers = again.ids.map(numberOf);
      expect(numbers).toEqual(numbers.map((_, index) => numberOf(last) + 1 + index));
    }),
    { numRuns: 150, seed: 17 },
  );
});

test("what happened while no process looked is sent as its last states, and says that states were skipped", async () => {
  const site = world();
  for (const id of ["n1", "n2", "n3", R1]) site.put(id);
  const client = site.follow();
  await site.clock.advance(1_000);
  site.kill();
  for (const id of ["n1", "n2", "n2", "n4", "n5", "n5"]) site.put(id, true);
  for (const id of ["n3", R1]) site.remove(id, true);
  site.restart();
  const again = site.follow(client.state.last);
  await site.clock.advance(1_000);
  expect(again.state.gaps).toBe(0);
  expect(again.reported).toEqual([
    ["n1", "version 1", false],
    ["n2", "version 2", true],
    ["n4", "version 0", false],
    ["n5", "version 1", true],
    ["n3", null, true],
    [R1, null, true],
  ]);
});

test("two segments are kept; a client that comes back too late gets a gap and all rows", async () => {
  const site = world();
  const client = site.follow();
  await site.clock.advance(1_000);
  const early = client.state.last;
  for (let at = 0; at < 25_000; at++) {
    site.put(`n${at % 7}`);
    if (at % 1_000 === 0) await site.clock.advance(200);
  }
  await site.clock.advance(1_000);
  const middle = client.ids.at(-5_000)!;
  site.kill();
  site.restart();
  expect(readFileSync(file).length + readFileSync(`${file}.1`).length).toBeLessThan(16_400 * 700);
  const [late, soon] = [site.follow(early), site.follow(middle)];
  await site.clock.advance(1_000);
  expect([late.state.gaps, late.reported.length]).toEqual([1, 7]);
  expect([soon.state.gaps, soon.reported.length]).toEqual([0, 4_999]);
  expect(soon.reported).toEqual(client.reported.slice(-4_999));
});

test("after a loss of power, an id that the file does not have is a gap, although its number was given again", async () => {
  const site = world();
  const client = site.follow();
  for (let at = 0; at < 10; at++) site.put("n1");
  await site.clock.advance(1_000);
  site.kill();
  const bytes = readFileSync(file);
  // The disk has half of the last line but two.
  const cut = bytes.lastIndexOf("\n", bytes.lastIndexOf("\n", bytes.lastIndexOf("\n", -2) - 1) - 1) + 20;
  truncateSync(file, cut);
  site.restart();
  for (let at = 0; at < 10; at++) site.put("n1");
  await site.clock.advance(1_000);
  const [lost, kept] = [site.follow(client.ids.at(-1)), site.follow(client.ids.at(-5))];
  await site.clock.advance(1_000);
  expect([lost.state.gaps, lost.reported.length]).toEqual([1, 1]);
  expect(kept.state.gaps).toBe(0);
  expect(kept.reported.map(([, version]) => version)).toEqual(
    [6, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19].map((version) => `version ${version}`),
  );
  // Three versions are in no line of the file.
  expect(kept.reported.map(([, , skipped]) => skipped).indexOf(true)).toBe(1);
});

test.each([
  "{",
  "null\n",
  '{"first":1,"things":0,"boots":[]}\n{"k":"node","i":"n1","e":{"v":0,"c":[],"s":"{"}}\n',
])("a file with %j is no reason to fail: it is made anew, and a restart is a gap once", async (text) => {
  writeFileSync(file, text);
  const site = world();
  const client = site.follow("0123abcd.7");
  await site.clock.advance(1_000);
  expect(client.state.gaps).toBe(1);
  site.put("n1");
  await site.clock.advance(1_000);
  site.kill();
  site.restart();
  const again = site.follow(client.state.last);
  site.put("n1");
  await site.clock.advance(1_000);
  expect([again.state.gaps, again.reported]).toEqual([0, [["n1", "version 1", false]]]);
});

test.each(["is missing", "cannot be written"])("a state folder that %s stops no client", async (how) => {
  if (how === "is missing") file = join(folder, "missing", EVENTS);
  // Neither a file nor removed by what removes files.
  else mkdirSync(join(file, "in the way"), { recursive: true });
  const site = world();
  const client = site.follow();
  await site.clock.advance(1_000);
  rmSync(folder, { recursive: true, force: true });
  for (let at = 0; at < 20_000; at++) {
    site.put("n1");
    if (at % 1_000 === 0) await site.clock.advance(200);
  }
  await site.clock.advance(1_000);
  expect([client.state.gaps, client.reported.length]).toEqual([0, 20_000]);
  expect(site.log.lines.filter(({ level }) => level === "warn").length).toBeGreaterThan(0);
});

test("nothing is kept before the first client, and no longer than one can come back", async () => {
  const site = world();
  for (let at = 0; at < 10; at++) site.put("n1");
  await site.clock.advance(1_000);
  expect(new EventFile(file).exists).toBe(false);
  const client = site.follow();
  await site.clock.advance(1_000);
  expect(new EventFile(file).exists).toBe(true);
  site.kill();
  site.restart();
  for (let at = 0; at < 9_000; at++) site.put("n1");
  await site.clock.advance(1_000);
  expect(new EventFile(file).exists).toBe(false);
  const again = site.follow(client.state.last);
  expect(again.state.gaps).toBe(1);
});
