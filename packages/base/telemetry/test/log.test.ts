import { type ChildProcess, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../../pool/launcher/test/rig.ts";
import { createLog, isJournald, type LogFormat } from "../src/index.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-log-"));
  file = join(folder, "nodeyard.log");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const linesOf = (path: string) =>
  readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "");

/** Lines of a log with this format, as `work` writes them. */
async function written(format: LogFormat, count: number, work: (log: ReturnType<typeof createLog>) => void) {
  work(createLog({ levels: {}, format, to: { file } }));
  return until("all is written", () => linesOf(file).length >= count && linesOf(file));
}

/** Linux's disk that is always full. */
const FULL = "/dev/full";

test.each(["json", "text"] as const)(
  "a disk that takes no more is no concern of those that log (%s)",
  async (format) => {
    const descriptor = openSync(FULL, "a");
    const log = createLog({ levels: {}, format, to: { descriptor } });
    expect(() => {
      for (let line = 0; line < 3; line++) log.error({ line }, "the disk is full");
    }).not.toThrow();
  },
);

test.each(["json", "text"] as const)(
  "facts that cannot be written as JSON stop no caller (%s)",
  async (format) => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const lines = await written(format, 2, (log) => {
      log.info({ circle }, "first");
      log.info({ at: 1, gone: undefined, "message ": 'a "quoted" fact' }, "second");
    });
    expect(lines[0]).toMatch(/first/);
    expect(lines[0]).toMatch(/circular structure/);
    if (format === "json")
      expect(JSON.parse(lines[1]!)).toMatchObject({
        at: 1,
        "message ": 'a "quoted" fact',
        message: "second",
      });
    else expect(lines[1]).toMatch(/second at=1 message ="a \\"quoted\\" fact"$/);
  },
);

test("the text format has the ids as the old log had them, in its order, each only where it is known", async () => {
  const lines = await written("text", 3, (log) => {
    const launcher = log.area("launcher");
    launcher.info({ node: "7", request: "100-1", event_id: "e1", ms: 5, az: null }, "made");
    launcher.warn({ node: "7" }, "gone");
    log.info({ why: "two words", list: ["a"] }, "plain");
  });
  expect(lines.map((line) => line.replace(/^\S+Z /, ""))).toEqual([
    "INFO launcher: [e: e1] [node_request: 100-1] [node: 7] made ms=5",
    "WARN launcher: [node: 7] gone",
    'INFO process: plain why="two words" list=["a"]',
  ]);
});

test("text from outside begins no line of its own and moves no cursor", async () => {
  const lines = await written("text", 1, (log) =>
    log.info({ event_id: "a\nINFO forged", error: "\u001b[2J\r" }, "broke\n\u009b1m"),
  );
  expect(lines).toHaveLength(1);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there
  expect(lines[0]).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
});

test("the journald format has the level as sd-daemon reads it, and leaves the time to journald", async () => {
  const lines = await written("journald", 3, (log) => {
    log.info({ node: "7" }, "made");
    log.warn({}, "slow");
    log.area("tree").error({}, "lost");
  });
  expect(lines).toEqual(["<6>process: [node: 7] made", "<4>process: slow", "<3>tree: lost"]);
});

test("stderr is journald only where JOURNAL_STREAM names its own device and inode", () => {
  const descriptor = openSync(file, "a");
  const { dev, ino } = fstatSync(descriptor, { bigint: true });
  expect(isJournald(descriptor, `${dev}:${ino}`)).toBe(true);
  expect(isJournald(descriptor, `${dev}:${ino + 1n}`)).toBe(false);
  expect(isJournald(descriptor, undefined)).toBe(false);
  closeSync(descriptor);
});

test("levels are set by area and while it runs; what is named wins over all", async () => {
  const log = createLog({ levels: { all: "warn", driver: "debug" }, format: "json", to: { file } });
  const say = (word: string) => {
    for (const area of ["launcher", "driver", "tree"] as const) log.area(area).debug({}, `${area} ${word}`);
    log.info({}, `process ${word}`);
  };
  say("first");
  log.setLevels({ tree: "debug", driver: "info" });
  say("second");
  log.setLevels({});
  say("third");
  log.error({}, "end");
  const texts = () => linesOf(file).map((line) => JSON.parse(line).message);
  expect(await until("all is written", () => texts().includes("end") && texts())).toEqual([
    "driver first",
    "tree second",
    "driver third",
    "end",
  ]);
});

test("a file that logrotate moved away is made anew for the next line, without a signal", async () => {
  const log = createLog({ levels: {}, format: "text", to: { file } });
  log.info({}, "before");
  await until("it is there", () => linesOf(file).length === 1);
  renameSync(file, `${file}.1`);
  log.info({}, "after");
  await until("it is made", () => existsSync(file) && linesOf(file).length === 1);
  expect(linesOf(`${file}.1`)).toEqual([expect.stringMatching(/before$/)]);
  expect(linesOf(file)).toEqual([expect.stringMatching(/after$/)]);
});

test("lines that a slow reader leaves no room for are dropped, and counted in the log when there is room again", async () => {
  const log = createLog({ levels: {}, format: "text", to: { file } });
  let noticed = 0;
  log.onDropped(() => noticed++);
  const text = "x".repeat(1_000_000);
  // In one turn nothing can be written.
  for (let line = 0; line < 10; line++) log.info({ line }, text);
  const atOnce = noticed;
  const last = await until("it is said", () => linesOf(file).find((line) => line.includes("were dropped")));
  const dropped = Number(/lines=(\d+)/.exec(last)?.[1]);
  expect(dropped).toBeGreaterThan(0);
  expect([atOnce, noticed], "told at once, and of each line once").toEqual([dropped, dropped]);
  expect(linesOf(file).filter((line) => line.includes(text))).toHaveLength(10 - dropped);
});

test.each([
  ["flushes", "await log.flush(); process.exit(3);"],
  ["just ends", "process.exit(3);"],
])("a process that %s loses no line, also while all threads of its pool are busy", async (_how, end) => {
  const source = fileURLToPath(new URL("../src/index.ts", import.meta.url));
  const program = `
    import { pbkdf2 } from "node:crypto";
    const { createLog } = await import(${JSON.stringify(source)});
    const log = createLog({ levels: {}, format: "text", to: { descriptor: 2 } });
    for (let thread = 0; thread < 8; thread++) pbkdf2("a", "b", 200_000, 64, "sha512", () => {});
    for (let line = 0; line < 5000; line++) log.info({ line }, "said");
    ${end}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const { code, text } = await outcomeOf(child);
  expect(code, text.slice(-500)).toBe(3);
  const numbers = [...text.matchAll(/ said line=(\d+)$/gm)].map(([, line]) => Number(line));
  const all = Array.from({ length: 5000 }, (_, line) => line);
  // A batch that is under way at a sudden end, or at the end of a flush on a machine where the pool is busy for longer, is written twice.
  expect([...new Set(numbers)].sort((a, b) => a - b)).toEqual(all);
});

async function outcomeOf(
  child: ChildProcess,
): Promise<{ readonly code: number | null; readonly text: string }> {
  let text = "";
  child.stderr?.on("data", (chunk) => {
    text += chunk;
  });
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, text })));
}
