import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { skip } from "../../../../../testing/skipped.ts";

/** Ours alone where we are root; else in a user namespace, where that is allowed. */
const UNSHARE = process.getuid?.() === 0 ? ["--mount"] : ["--user", "--map-root-user", "--mount"];
const ENTER = process.getuid?.() === 0 ? ["--mount"] : ["--user", "--preserve-credentials", "--mount"];

/** Why there can be no small disk here; undefined when there can. */
export function noSmallDisk(): string | undefined {
  const { status, stderr, error } = spawnSync("unshare", [
    ...UNSHARE,
    "mount",
    "-t",
    "tmpfs",
    "none",
    "/mnt",
  ]);
  if (status === 0) return undefined;
  return skip(
    `tests of a full disk need a file system in a namespace of its own: ${error?.message ?? String(stderr).trim()}`,
    "unshare",
  );
}

/** A file system of a few megabytes on `folder`, which only those see that are started `through` it. */
export class SmallDisk {
  /** Command words that start a process which sees the disk at `folder`. */
  readonly through: readonly string[];
  /** Where everybody else finds what it holds. */
  readonly seen: string;
  readonly #holder: ChildProcess;
  readonly #ballast: string;

  static async mount(folder: string, megabytes: number): Promise<SmallDisk> {
    const script = `mount -t tmpfs -o size=${megabytes}m none "$0" && echo mounted && exec sleep 600`;
    const holder = spawn("unshare", [...UNSHARE, "sh", "-c", script, folder], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(holder.stdout!, "data");
    return new SmallDisk(folder, holder);
  }

  private constructor(folder: string, holder: ChildProcess) {
    this.#holder = holder;
    this.through = ["nsenter", "--target", String(holder.pid), ...ENTER];
    this.seen = `/proc/${holder.pid}/root${folder}`;
    this.#ballast = join(this.seen, "ballast");
  }

  /** Leaves no byte free. */
  fill(): void {
    const block = Buffer.alloc(4_096);
    try {
      for (;;) writeFileSync(this.#ballast, block, { flag: "a" });
    } catch (error) {
      if ((error as { code?: string }).code !== "ENOSPC") throw error;
    }
  }

  /** Room again. */
  empty(): void {
    rmSync(this.#ballast);
  }

  /** From now on nothing can be written; processes that write must be gone. */
  freeze(folder: string): void {
    const { status, stderr } = spawnSync(this.through[0]!, [
      ...this.through.slice(1),
      "mount",
      "-o",
      "remount,ro",
      folder,
    ]);
    if (status !== 0) throw new Error(`not frozen: ${stderr}`);
  }

  async close(): Promise<void> {
    const ended = once(this.#holder, "exit");
    this.#holder.kill("SIGKILL");
    await ended;
  }
}
