import { execFile, spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { adopt } from "./children.ts";

const run = promisify(execFile);
/** Deadline for a script that hangs; long, because the machine may stall for seconds. */
const RUN_LIMIT_MS = patient(80_000);

/** What every script may use: `args`, `say(value)` (one JSON line out), `hear()` (one JSON line in), `client(hosts)`. */
const PRELUDE = `
import json, logging, sys, threading, time
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import *
logging.basicConfig(level=logging.CRITICAL)
args = sys.argv[1:]
def say(value):
    sys.stdout.write(json.dumps(value) + "\\n")
    sys.stdout.flush()
def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)
def client(hosts, **options):
    made = KazooClient(hosts=hosts, **options)
    made.start(timeout=60)
    return made
`;

import { patient } from "../patience.ts";

let python: { readonly path: string | undefined } | undefined;

/** A Python that can import kazoo; Debian's own comes first, since a version manager may hide it on PATH. */
export function findPython(): string | undefined {
  python ??= {
    path: ["/usr/bin/python3", "python3"].find(
      (candidate) => spawnSync(candidate, ["-c", "import kazoo"]).status === 0,
    ),
  };
  return python.path;
}

/** Runs a Python script to its end and returns what it wrote to stdout. Rejects with its stderr when it fails. */
export async function kazoo(script: string, args: readonly string[] = []): Promise<string> {
  const { stdout } = await run(pythonOrThrow(), ["-c", PRELUDE + script, ...args], {
    timeout: RUN_LIMIT_MS,
    killSignal: "SIGKILL",
    maxBuffer: 64 << 20,
  });
  return stdout;
}

/** A Python script that keeps running and exchanges JSON lines. */
export interface KazooProcess {
  readonly pid: number;
  /** The next value that the script `say`s; rejects when it ends first, or after 80 s. */
  hear(): Promise<unknown>;
  /** Hands a value to the script's `hear()`. */
  say(value: unknown): void;
  /** `say`, then `hear`. */
  ask(value: unknown): Promise<unknown>;
  /** SIGKILL: its session stays open at the server until it times out. */
  kill(): Promise<void>;
}

const HEAR_LIMIT_MS = patient(80_000);

/** Starts a script that keeps running. */
export function startKazoo(script: string, args: readonly string[] = []): KazooProcess {
  const child = spawn(pythonOrThrow(), ["-c", PRELUDE + script, ...args], { stdio: "pipe" });
  const ended = adopt(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  child.stdin.on("error", () => undefined);

  async function hear(): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`kazoo said nothing in ${HEAR_LIMIT_MS} ms\n${errors}`)),
        HEAR_LIMIT_MS,
      );
    });
    const line = await Promise.race([lines.next(), late]).finally(() => clearTimeout(timer));
    if (line.done) throw new Error(`the kazoo script ended\n${errors}`);
    return JSON.parse(line.value);
  }
  function say(value: unknown): void {
    child.stdin.write(`${JSON.stringify(value)}\n`);
  }
  return {
    pid: child.pid ?? -1,
    hear,
    say,
    ask: (value) => {
      say(value);
      return hear();
    },
    kill: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

function pythonOrThrow(): string {
  const path = findPython();
  if (path === undefined) throw new Error("no python3 that can import kazoo: apt-get install python3-kazoo");
  return path;
}
