import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { attachEmbeddedTree } from "@nodeyard/tree";
import { afterEach, beforeEach, expect, test } from "vitest";
import { requireSshd } from "../../../../testing/sshd/index.ts";
import { noSmallDisk, SmallDisk } from "../../../pool/launcher/test/rules/small-disk.ts";

const DEMO = fileURLToPath(new URL("../../../../examples/demo/main.ts", import.meta.url));
/** Changes to the folder in the mount namespace that it was started in. */
const IN_FOLDER = ["/bin/sh", "-c", 'cd "$0" && exec "$@"'];

let folder: string;
let running: ChildProcess[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-demo-test-"));
  running = [];
});
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** `npm start` in `cwd`; without programs of the system, and so without real nodes, unless `path` says where they are. */
function demo(
  words: readonly string[] = [],
  cwd = folder,
  through: readonly string[] = [],
  path = through.length > 0 ? process.env.PATH : "/nonexistent",
) {
  const [command, ...rest] = [
    ...through,
    ...IN_FOLDER,
    cwd,
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    DEMO,
    "--no-slivers",
    ...words,
  ];
  const child = spawn(command!, rest, {
    env: { ...process.env, PATH: path },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.push(child);
  const text = { out: "", err: "" };
  const ended = new Promise<{ code: number | null; out: string; err: string }>((resolve) =>
    child.once("close", (code) => resolve({ code, ...text })),
  );
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    text.err += chunk;
  });
  const up = new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text.out += chunk;
      if (text.out.includes("stays up until Ctrl-C")) resolve();
    });
    void ended.then(({ out, err }) => reject(new Error(`it ended: ${out}${err}`)));
  });
  up.catch(() => {});
  return { child, ended, up, text };
}

test("a second one in the folder is refused, and touches nothing of the first, which a closed terminal stops in good order", async () => {
  const first = demo();
  await first.up;
  const link = new URL(/^http:\S+$/m.exec(first.text.out)![0]);
  const login = await fetch(new URL("/v1/session", link), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ticket: link.hash.replace("#ticket=", "") }),
  });
  expect(await login.json()).toMatchObject({ role: "operator" });
  expect((await fetch(new URL("/metrics", link))).status).toBe(401);
  const file = join(folder, ".nodeyard/nodepool.yaml");
  const before = [readFileSync(file, "utf8"), statSync(file).mtimeMs];
  const second = await demo().ended;
  expect([second.code, second.out]).toEqual([1, ""]);
  expect(second.err).toMatch(
    new RegExp(
      `^nodeyard: the demo failed: \\.nodeyard is in use by process ${first.child.pid}; stop it, [^(]*\n$`,
    ),
  );
  expect([readFileSync(file, "utf8"), statSync(file).mtimeMs]).toEqual(before);

  first.child.kill("SIGHUP");
  const { code, out, err } = await first.ended;
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/returning the nodes and stopping\n/);
  expect(out).toContain("the next start keeps them");

  // What nobody edited is written anew; what somebody did is used.
  const again = demo();
  await again.up;
  expect(again.text.out).not.toContain("was edited");
  expect(again.text.out).not.toContain("nodeyard release");
  again.child.kill("SIGKILL");
  await again.ended;
  const edited = `${readFileSync(file, "utf8")}# mine\n`;
  writeFileSync(file, edited);
  const third = demo();
  await third.up;
  expect(third.text.out).toContain("was edited, and is used as it is");
  // A demo that was killed has left its leases; one that was stopped has not.
  expect(third.text.out).toMatch(/\$ nodeyard release [\da-f]{12}\n/);
  expect([again, third].map(({ text }) => text.out).join()).not.toContain("there is no lease");
  await stopped(third);
  expect(readFileSync(file, "utf8")).toBe(edited);
});

test.skipIf(requireSshd())("the login that it prints works as it is printed", async () => {
  const run = demo([], folder, [], process.env.PATH);
  await run.up;
  const [, login] = /^ {2}(ssh -i .*)$/m.exec(run.text.out)!;
  const said = execFileSync("/bin/sh", ["-c", `${login} -o BatchMode=yes 'echo "I am $(whoami)"'`], {
    cwd: folder,
    encoding: "utf8",
  });
  expect(said).toBe(`I am ${/ (\S+)@\S+$/.exec(login!)![1]}\n`);
  await stopped(run);
});

async function stopped({ child, ended }: ReturnType<typeof demo>): Promise<void> {
  child.kill("SIGTERM");
  expect((await ended).code).toBe(0);
}

test.skipIf(noSmallDisk() !== undefined)("a full disk ends it with the reason", async () => {
  const place = join(folder, "disk");
  mkdirSync(place);
  const disk = await SmallDisk.mount(place, 8);
  try {
    const { up, ended } = demo([], place, disk.through);
    await up;
    const state = join(disk.seen, ".nodeyard");
    const tree = await attachEmbeddedTree({ folder: state, clock: systemClock, random: systemRandom });
    disk.fill();
    await tree.create("/one-more", Buffer.alloc(4_096), { deadlineMs: 1_000 }).catch(() => {});
    const { code, err } = await ended;
    await tree.close();
    expect(code).toBe(1);
    expect(err).toMatch(
      /^nodeyard: the tree in \.nodeyard cannot be written \(.*full\): .*; free disk space .*\n$/,
    );
  } finally {
    for (const child of running) child.kill("SIGKILL");
    await disk.close();
  }
});

test("words that it does not know are refused, and --help is answered, before anything is begun", async () => {
  const started = [["--no-sliver"], ["now"], ["--once=yes"], ["--bogus", "--help"]].map(
    (words) => demo(words).ended,
  );
  const refused = await Promise.all(started);
  expect(refused.map(({ code, out }) => [code, out])).toEqual(Array(4).fill([2, ""]));
  for (const { err } of refused)
    expect(err).toMatch(/^nodeyard: [^\n]*"npm start -- --help" shows what there is\n$/);
  expect(refused[0]?.err).toContain("'--no-sliver'");
  const { code, out, err } = await demo(["--help"]).ended;
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/--once .*\n {2}--no-slivers .*\n/);
  expect(() => statSync(join(folder, ".nodeyard"))).toThrow("ENOENT");
});
