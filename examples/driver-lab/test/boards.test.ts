import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { DriverError, runSteps, type Tag } from "@nodeyard/driver";
import { systemClock as clock } from "@nodeyard/runtime";
import { expect, onTestFinished, test } from "vitest";
import { identityOf } from "../src/edge/process.ts";
import { mapError } from "../src/errors.ts";
import { boardName, tagOf } from "../src/name.ts";
import { type LabRig, labRig } from "./rig.ts";

const { signal } = new AbortController();
const tag: Tag = { installation: "i", provider: "desk", pool: "main", nodeId: "0000000007" };
const folderOf = (rig: LabRig) => join(rig.folder, boardName(tag));

async function setUp() {
  const rig = await labRig();
  onTestFinished(() => rig.stop());
  const provider = await rig.open("i");
  const saved: unknown[] = [];
  const order = { tag, hostname: "np0000000007", pool: rig.pool, label: rig.label } as Parameters<
    typeof provider.create
  >[0];
  return {
    rig,
    provider,
    saved,
    create: () =>
      runSteps((step) => provider.create(order, step), {
        clock,
        signal,
        externalId: null,
        save: async (id) => void saved.push(id),
      }),
    remove: () =>
      runSteps((step) => provider.remove(tag, step), {
        clock,
        signal,
        externalId: null,
        save: async () => {},
      }),
  };
}

function greetingOf(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    connect(port, "127.0.0.1")
      .setEncoding("utf8")
      .on("data", (part) => {
        text += part;
      })
      .on("end", () => resolve(text))
      .on("error", reject);
  });
}

function entryOf(rig: LabRig): { pid: number; identity: string; port: number } {
  return JSON.parse(readFileSync(join(folderOf(rig), "board.json"), "utf8"));
}

test("a board greets, writes to its console, and is gone after its removal", async () => {
  const { rig, create, remove, saved } = await setUp();
  const machine = await create();
  expect(saved).toEqual([boardName(tag)]);
  expect(machine).toMatchObject({
    externalId: boardName(tag),
    interfaceIp: "127.0.0.1",
    hostname: "np0000000007",
  });
  const port = machine.connection!.port!;
  expect(await greetingOf(port)).toBe("np0000000007: hello\n");
  expect(readFileSync(join(folderOf(rig), "console.log"), "utf8")).toContain(`listens on 127.0.0.1:${port}`);
  await remove();
  expect(existsSync(folderOf(rig))).toBe(false);
  await expect(greetingOf(port)).rejects.toThrow("ECONNREFUSED");
});

test("a board that died is started again in its folder; a live one is left as it is", async () => {
  const { rig, create } = await setUp();
  await create();
  const first = entryOf(rig);
  await create();
  expect(entryOf(rig)).toEqual(first);
  process.kill(first.pid, "SIGKILL");
  while (identityOf(first.pid) !== undefined) await new Promise((resolve) => setTimeout(resolve, 5));
  const machine = await create();
  expect(entryOf(rig).pid).not.toBe(first.pid);
  expect(await greetingOf(machine.connection!.port!)).toContain("hello");
});

test("another process with the id of a board is recognised as another, and is not killed", async () => {
  const { rig, create, remove } = await setUp();
  const stranger = spawn("sleep", ["60"]);
  onTestFinished(() => void stranger.kill("SIGKILL"));
  const gone = new Promise((resolve) => stranger.once("exit", () => resolve("killed")));
  mkdirSync(folderOf(rig));
  writeFileSync(
    join(folderOf(rig), "board.json"),
    JSON.stringify({ pid: stranger.pid, identity: "another boot 12345", port: 1 }),
  );
  const machine = await create();
  expect(await greetingOf(machine.connection!.port!)).toContain("hello");
  const real = entryOf(rig);
  onTestFinished(() => void process.kill(real.pid, "SIGKILL"));
  const later = { ...real, pid: stranger.pid, identity: `${real.identity}0` };
  writeFileSync(join(folderOf(rig), "board.json"), JSON.stringify(later));
  await remove();
  expect(await Promise.race([gone, new Promise((resolve) => setImmediate(() => resolve("alive")))])).toBe(
    "alive",
  );
});

test("a board whose folder was given up ends by itself, and a folder has only one process", async () => {
  const { rig, create, provider } = await setUp();
  await create();
  const first = entryOf(rig);
  const program = new URL("../src/edge/board.ts", import.meta.url).pathname;
  const second = spawn(process.execPath, [program], { cwd: folderOf(rig), stdio: "ignore" });
  expect(await new Promise((resolve) => second.once("exit", resolve))).not.toBe(0);
  expect(entryOf(rig)).toEqual(first);
  expect(await provider.list(signal)).toHaveLength(1);
});

test("a board that cannot start fails the launch with its output", async () => {
  const { rig, create, provider } = await setUp();
  mkdirSync(folderOf(rig));
  symlinkSync("nowhere", join(folderOf(rig), "board.json"));
  const failure = await create().catch((error) => error);
  expect(failure).toBeInstanceOf(DriverError);
  expect(failure).toMatchObject({
    kind: "transient",
    message: expect.stringContaining("ended: cannot go on: EEXIST"),
  });
  expect(await provider.find(tag, signal)).toBe(boardName(tag));
});

test("names contain the whole tag, with any characters; other folders have no tag", () => {
  for (const provider of ["desk", "a,b", "../..", "Ü%2C", "a b"]) {
    const odd = { ...tag, provider, pool: `${provider}/x` };
    expect(boardName(odd)).not.toContain("/");
    expect(tagOf(boardName(odd))).toEqual(odd);
  }
  for (const name of ["lost+found", "a,b,c", "a,b,c,7", "%,a,b,0000000001", "a,b,c,d,0000000001"])
    expect(tagOf(name)).toBeNull();
});

test("the system's errors become kinds for the launcher", () => {
  const kind = (code: string) => mapError(Object.assign(new Error(code), { code }), "desk: list").kind;
  expect(["ENOSPC", "EACCES", "ENOENT", "EWEIRD"].map(kind)).toEqual([
    "capacity",
    "configuration",
    "transient",
    "fatal",
  ]);
});
