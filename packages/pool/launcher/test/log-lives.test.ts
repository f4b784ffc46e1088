import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CreateOrder, DriverError, type Provider, type Step, type StepContext } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { createLog, journalEvents, NODE_FIELDS } from "@nodeyard/telemetry";
import type { Tree } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, type Rig, startRig, until } from "./rig.ts";
import { withMethods } from "./rules/with-methods.ts";

/** One line of the log that tells an event, as a search would find it. */
interface Line {
  readonly text: string;
  readonly eventId: string | undefined;
  readonly request: string | undefined;
  readonly node: string | undefined;
  readonly event: string;
  readonly fields: ReadonlyMap<string, unknown>;
}

const LINE =
  /^\S+Z (?:INFO|WARN|ERROR) \w+: (?:\[e: (.+?)\] )?(?:\[node_request: (\S+)\] )?(?:\[node: (\S+)\] )?[^[=]+ event=(\S+)(.*)$/;

function linesIn(file: string): readonly Line[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((text) => {
      const [, eventId, request, node, event, rest = ""] = LINE.exec(text) ?? [];
      if (event === undefined) return [];
      const fields = rest.matchAll(/ (\w+)=("(?:[^"\\]|\\.)*"|[[{].*?[\]}](?= \w+=|$)|\S+)/g);
      const all = [...fields].map(([, key, value]) => [key!, parsed(value!)] as const);
      return [{ text, eventId, request, node, event, fields: new Map(all) }];
    });
}

function parsed(text: string): unknown {
  return /^["[{]/.test(text) ? JSON.parse(text) : text;
}

const shortly = (lines: readonly Line[]) => lines.map(({ event }) => event.replace("node.", "")).join(" ");

/** The driver's own create, which fails after the machine is made: at the first attempt, or always; or hangs before. */
async function* troubled(inner: Provider, order: CreateOrder, context: StepContext) {
  const { eventId } = order.request;
  const fails = eventId === "never" || (eventId === "second try" && order.attempt === 1);
  const steps = inner.create(order, context);
  for (;;) {
    const next = await steps.next();
    if (next.done) return next.value;
    yield next.value satisfies Step;
    if (eventId === "hangs" && next.value.step === "server")
      await new Promise((_, reject) =>
        context.signal.addEventListener("abort", () => reject(context.signal.reason)),
      );
    if (fails && next.value.step === "wait") throw new DriverError("transient", "the machine fell over");
  }
}

/** What a user does: takes the node's lock and begins to use it. Returns what gives it back. */
async function use(tree: Tree, id: string): Promise<() => Promise<void>> {
  const lock = `${paths.nodeLock(id)}/${"e".repeat(32)}__lock__`;
  const { path } = await tree.create(lock, undefined, { ephemeral: true, sequential: true });
  const write = async (state: string) => {
    const { data } = await tree.get(paths.node(id));
    const record = { ...JSON.parse(Buffer.from(data).toString()), state, state_time: 2 };
    await tree.set(paths.node(id), Buffer.from(JSON.stringify(record)));
  };
  await write("in-use");
  return async () => {
    await write("used");
    await tree.delete(path);
  };
}

const config = launcherConfig([fakeProvider("cloud", { "launch-retries": 2 })]);
const around = withMethods((inner) => ({ create: (order, context) => troubled(inner, order, context) }));

async function inFolder(work: (rig: Rig, file: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-log-"));
  const file = join(folder, "launcher.log");
  const logTo = createLog({ levels: {}, format: "text", to: { file } });
  try {
    await using rig = await startRig(config, { logTo, around });
    await work(rig, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Of each kind no more than may fail in a row before an offering is closed. */
const eventIdOf = (at: number) => (at % 50 === 7 ? "never" : at % 25 === 3 ? "second try" : `event ${at}`);

/** 100 requests, of which some fail; what is delivered is used and given back. Returns their event ids. */
async function play(rig: Rig, file: string): Promise<ReadonlyMap<string, string>> {
  const asked = new Map<string, string>();
  for (let at = 0; at < 100; at++) {
    const eventId = eventIdOf(at);
    const types = eventId === "never" ? ["large"] : at % 10 === 0 ? ["small", "small"] : ["small"];
    asked.set(await rig.ask({ event_id: eventId, node_types: types }), eventId);
  }
  const reported = (event: string) => linesIn(file).filter((line) => line.event === event);
  const failed = () => reported("request.declined").filter(({ fields }) => fields.get("state") === "failed");
  await until("all have ended", () => reported("request.fulfilled").length + failed().length === asked.size);
  const nodes = reported("request.fulfilled").flatMap(({ fields }) => fields.get("nodes") as string[]);
  const ends = await Promise.all(nodes.map((id) => use(rig.tree, id)));
  await until("all are in use", () => reported("node.in-use").length === nodes.length);
  await Promise.all(ends.map((end) => end()));
  await until("no node is left", () => reported("node.deleted").length === reported("node.created").length);
  return asked;
}

function checkRequest(id: string, eventId: string, lines: readonly Line[]): void {
  const own = lines.filter(({ request, event }) => request === id && event.startsWith("request."));
  const end = eventId === "never" ? "declined" : "fulfilled";
  expect(shortly(own)).toMatch(
    new RegExp(`^(request.accepted request.put-back )*request.accepted request.${end}$`),
  );
  for (const line of own) expect(line.eventId, line.text).toBe(eventId);
}

const ATTEMPT = "launching step step machine step";
const LIVES: Readonly<Record<string, string>> = {
  never: `${ATTEMPT} launch-failed step step ${ATTEMPT} launch-failed failed`,
  "second try": `${ATTEMPT} launch-failed step step ${ATTEMPT} ready in-use returned`,
};

function checkNode(id: string, eventId: string | undefined, life: readonly Line[]): void {
  const launch = LIVES[eventId ?? ""] ?? `${ATTEMPT} ready in-use returned`;
  expect(shortly(life), id).toBe(`created ${launch} deleting step step deleted`);
  for (const line of life) {
    // The record of a launch that failed names no request any more.
    const ending = line.event.startsWith("node.delet") || line.fields.get("of") === "delete";
    if (line.request !== undefined || !ending) expect(line.request, line.text).toBe(life[0]?.request);
    for (const key of NODE_FIELDS) expect(line.fields.get(key), line.text).toBe(life[0]?.fields.get(key));
    const { facts } = journalEvents[line.event as keyof typeof journalEvents];
    expect([...facts, ...NODE_FIELDS], line.text).toEqual(expect.arrayContaining([...line.fields.keys()]));
  }
  const ready = life.find(({ event }) => event === "node.ready")?.fields;
  if (ready === undefined) return;
  const machine = life.findLast(({ event }) => event === "node.machine");
  expect(ready.get("server_id")).toBe(machine?.fields.get("server_id"));
  expect(Object.keys(ready.get("steps") as object)).toEqual(["find", "server", "wait", "scan"]);
}

test("the log alone tells the whole life of 100 requests and of each of their nodes", async () => {
  await inFolder(async (rig, file) => {
    const asked = await play(rig, file);
    const lines = linesIn(file);
    for (const [id, eventId] of asked) checkRequest(id, eventId, lines);
    const made = [...new Set(lines.flatMap(({ node }) => node ?? []))];
    expect(made).toHaveLength(110);
    for (const id of made) {
      const life = lines.filter(({ node }) => node === id);
      const eventId = asked.get(life[0]?.request ?? "");
      checkNode(id, eventId, life);
      const delivering = lines.filter(({ text }) => new RegExp(`nodes=\\[[^\\]]*"${id}"`).test(text));
      expect(shortly(delivering)).toBe(eventId === "never" ? "" : "request.fulfilled");
    }
  });
});

test("the log of a launch that is lost names the step it was at, whether or not its launcher came to say so", async () => {
  await inFolder(async (rig, file) => {
    await rig.ask({ event_id: "hangs" });
    const last = () => linesIn(file).findLast(({ node }) => node !== undefined);
    const step = await until("it hangs", () => last()?.event === "node.step" && last());
    expect(step.fields.get("next")).toBe("server");
    await rig.launcher.close(0);
    await until("it is said", () => last()?.event === "node.given-up");
    const lines = linesIn(file).filter(({ node }) => node === step.node);
    expect(shortly(lines.slice(-2))).toBe("step given-up");
    expect(lines.at(-2)?.fields.get("step")).toBe("server");
    expect(lines.at(-2)?.fields.get("error")).toMatch(/stopped/);
  });
});
