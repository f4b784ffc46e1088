import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { identityOf } from "./process.ts";

// Beside this file in the sources and in the published package.
const PROGRAM = fileURLToPath(new URL(`./board${extname(import.meta.url)}`, import.meta.url));

/** absent: no folder. idle: a folder without a running process. running: the process is ours and lives. */
export type BoardState =
  | { readonly state: "absent" | "idle" }
  | { readonly state: "running"; readonly pid: number; readonly port: number };

interface Entry {
  readonly pid: number;
  readonly identity: string;
  readonly port: number;
}

/**
 * Boards as folders: `wanted` says what the process should do; the process itself writes `board.json`, which identifies it; `console.log`
 * is its output. All methods reject with the system's errors.
 */
export class Boards {
  readonly #root: string;

  private constructor(root: string) {
    this.#root = root;
  }

  static async open(root: string): Promise<Boards> {
    if (identityOf(process.pid) === undefined)
      throw new Error("this system has no /proc to tell processes by");
    await mkdir(root, { recursive: true, mode: 0o700 });
    return new Boards(root);
  }

  async names(): Promise<readonly string[]> {
    const entries = await readdir(this.#root, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  }

  async has(name: string): Promise<boolean> {
    return (await ignoring("ENOENT", stat(join(this.#root, name)))) !== undefined;
  }

  /** Makes the folder; false if it exists already. */
  async claim(name: string): Promise<boolean> {
    const made = await ignoring(
      "EEXIST",
      mkdir(join(this.#root, name), { mode: 0o700 }).then(() => true),
    );
    return made === true;
  }

  async state(name: string): Promise<BoardState> {
    if (!(await this.has(name))) return { state: "absent" };
    const entry = await this.#entry(name);
    if (entry === undefined || identityOf(entry.pid) !== entry.identity) return { state: "idle" };
    return { state: "running", pid: entry.pid, port: entry.port };
  }

  /** Starts the process of an idle board, which outlives this one. Resolves when it exists; it may still end at once. */
  async start(
    name: string,
    order: { readonly hostname: string; readonly greeting: string },
  ): Promise<ChildProcess> {
    const folder = join(this.#root, name);
    await this.#forget(name);
    await writeFile(join(folder, "wanted.new"), JSON.stringify(order));
    await rename(join(folder, "wanted.new"), join(folder, "wanted"));
    const log = await open(join(folder, "console.log"), "a", 0o600);
    try {
      const child = spawn(process.execPath, [PROGRAM], {
        cwd: folder,
        env: {},
        detached: true,
        stdio: ["ignore", log.fd, log.fd],
      });
      await once(child, "spawn");
      child.unref();
      return child;
    } finally {
      await log.close();
    }
  }

  /** Withdraws `wanted` and kills the process. It may take a moment to end: see `state`. */
  async stop(name: string): Promise<void> {
    await rm(join(this.#root, name, "wanted"), { force: true });
    const board = await this.state(name);
    // Its identity was checked a moment ago: the id alone may belong to another process by now.
    if (board.state === "running") process.kill(board.pid, "SIGKILL");
  }

  /** Removes the folder of a board that does not run. Does nothing if it is gone. */
  async discard(name: string): Promise<void> {
    await rm(join(this.#root, name), { recursive: true, force: true, maxRetries: 5 });
  }

  /** The last line that the board wrote. */
  async lastLine(name: string): Promise<string> {
    const text = (await ignoring("ENOENT", readFile(join(this.#root, name, "console.log"), "utf8"))) ?? "";
    return text.trim().split("\n").at(-1) || "it wrote nothing";
  }

  /** Only if its process has ended: one that a killed launcher started may be entering it right now. */
  async #forget(name: string): Promise<void> {
    const entry = await this.#entry(name);
    if (entry !== undefined && identityOf(entry.pid) !== entry.identity)
      await rm(join(this.#root, name, "board.json"), { force: true });
  }

  async #entry(name: string): Promise<Entry | undefined> {
    const text = await ignoring("ENOENT", readFile(join(this.#root, name, "board.json"), "utf8"));
    return text === undefined ? undefined : (JSON.parse(text) as Entry);
  }
}

/** Undefined if the system's error is `code`. */
async function ignoring<T>(code: string, work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === code) return undefined;
    throw error;
  }
}
