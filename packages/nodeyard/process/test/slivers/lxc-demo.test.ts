import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patience } from "../../../../../testing/patience.ts";
import { difference, hostState, whyNot } from "../../../../../testing/slivers/index.ts";

const DEMO = fileURLToPath(new URL("../../../../../examples/demo/main.ts", import.meta.url));
/** As in examples/demo/sliver-plan.ts: what stays of it is what this test is about. */
const PLACES = ["/var/lib/nodeyard-demo", "/run/nodeyard-demo"];

/** There the kernel ends a job as a whole, with its login. */
const isV2 = existsSync("/sys/fs/cgroup/cgroup.controllers");

describe.skipIf(whyNot() !== undefined)("npm start with slivers of this machine", () => {
  let folder: string;
  let before: ReturnType<typeof hostState>;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-demo-test-"));
    before = hostState(PLACES[0]!);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("asks, logs in, shows a limit, releases, and leaves the machine as it was", async () => {
    const { code, out, err } = await demo([], "--once").end;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain("Slivers of this machine are handed out");
    expect(out).toMatch(/hello from ny-\d+, port 22\n/);
    expect(out).toContain(
      isV2 ? "\na job that takes all memory ends as one" : "\na process that takes all memory exits with 137",
    );
    expect(out).toContain("all 3 nodes are returned");
    expect(left()).toEqual([]);
  });

  test("it is killed: what watches over it takes everything away", async () => {
    const running = demo([]);
    await running.says("Nodeyard stays up");
    expect(slivers()).not.toEqual([]);
    running.child.kill("SIGKILL");
    await running.end;
    await until(() => !existsSync(PLACES[0]!));
    expect(left()).toEqual([]);
  });

  test("all of it is killed: the next start takes everything away, and works", async () => {
    const running = demo([]);
    await running.says("Nodeyard stays up");
    running.child.kill("SIGSTOP");
    for (const pid of processesOf(PLACES[0]!)) process.kill(pid, "SIGKILL");
    running.child.kill("SIGKILL");
    await running.end;
    expect(slivers()).not.toEqual([]);
    const { code, out, err } = await demo([], "--once").end;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/hello from ny-\d+, port 22\n/);
    expect(left()).toEqual([]);
  });

  test("Ctrl-C gives the nodes back and leaves the machine as it was", async () => {
    const running = demo([]);
    await running.says("Nodeyard stays up");
    running.child.kill("SIGINT");
    expect(await running.end).toMatchObject({ code: 0, err: "" });
    expect(left()).toEqual([]);
  });

  test("where another sliver manager works it keeps away, says so, and goes on with static hosts", async () => {
    execFileSync("nft", ["add", "table", "inet", "nodeyard-slivers"]);
    try {
      const { code, out } = await demo([], "--once").end;
      expect(code).toBe(0);
      expect(out).toContain("Static hosts instead of slivers of this machine: another sliver manager works");
      expect(out).toContain("all 3 nodes are returned");
      expect(PLACES.filter((place) => existsSync(place))).toEqual([]);
    } finally {
      execFileSync("nft", ["delete", "table", "inet", "nodeyard-slivers"]);
    }
  });

  test("where slivers would escape their limits it says why, leaves nothing, and goes on with static hosts", async () => {
    const pids = "/sys/fs/cgroup/pids";
    const group = join(existsSync(pids) ? pids : "/sys/fs/cgroup", "stray");
    mkdirSync(group);
    try {
      const enter = `echo $$ > ${group}/cgroup.procs; exec unshare --pid --fork --mount --mount-proc "$@"`;
      const { code, out, err } = await demo(["sh", "-c", enter, "sh"], "--once").end;
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out).toContain("Static hosts instead: slivers cannot be made here");
      expect(out).toContain("process 1 of this machine is in control group /stray");
      expect(out).toContain("all 3 nodes are returned");
    } finally {
      rmdirSync(group);
    }
    expect(left()).toEqual([]);
  });

  /** What is on the machine and was not, or the other way round. */
  function left(): string[] {
    const places = PLACES.filter((place) => existsSync(place)).map((place) => `place + ${place}`);
    return [...places, ...difference(before, hostState(PLACES[0]!))];
  }

  function demo(below: readonly string[], ...words: string[]): Demo {
    const all = [...below, process.execPath, "--disable-warning=ExperimentalWarning", DEMO, ...words];
    const child = spawn(all[0]!, all.slice(1), {
      cwd: folder,
      env: { ...process.env, TMPDIR: folder },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const text = { out: "", err: "" };
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text.out += chunk;
    });
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      text.err += chunk;
    });
    const end = new Promise<Ended>((resolve) => child.once("close", (code) => resolve({ code, ...text })));
    return {
      child,
      end,
      says: (words) =>
        until(() => {
          if (child.exitCode !== null) throw new Error(`it ended: ${text.out}\n${text.err}`);
          return text.out.includes(words);
        }),
    };
  }
});

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

interface Demo {
  readonly child: ChildProcess;
  readonly end: Promise<Ended>;
  says(words: string): Promise<void>;
}

function slivers(): string[] {
  const folder = join(PLACES[0]!, "slivers");
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Processes that a path is an argument of. */
function processesOf(path: string): number[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8")
        .split("\0")
        .some((word) => word.startsWith(`${path}/sliverd.json`))
        ? [Number(pid)]
        : [];
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
}

async function until(check: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_200 * patience(); turn++) {
    if (check()) return;
    await pause(100);
  }
  throw new Error("it did not happen");
}
