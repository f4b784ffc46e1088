import { chmod, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { RESOURCES, type Rspec } from "@nodeyard/sliver-protocol";
import { z } from "zod";
import { syncPath, writeAtomic } from "../../edge/files.ts";
import { exists } from "../../storage/edge/pool.ts";

const whole = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const schema = z.object({
  v: z.literal(1),
  name: z.string(),
  generation: whole,
  /** What its root is made from. */
  root: z.enum(["account", "container"]),
  /** KiB that its root may hold. */
  disk: whole,
  /** Processes that were killed for memory in the groups that it had before: each start makes new ones. */
  memoryKills: whole.default(0),
  /** False until it can be started: what a crash leaves is created again. */
  made: z.boolean(),
  applied: z
    .strictObject({
      digest: z.string(),
      effective: z
        .record(z.string(), whole)
        .refine((value) => RESOURCES.every((name) => value[name] !== undefined), "lacks a resource")
        .transform((value) => value as Rspec),
    })
    .optional(),
});

/** What is known of a sliver besides its index and incarnation, which its folder's name tells. */
export type Mark = z.output<typeof schema>;

/** The file of a mark. */
export function markText(mark: Mark): string {
  return `${JSON.stringify(mark, undefined, 2)}\n`;
}

/** Undefined for a mark that is damaged: its sliver is there, and is broken. */
export function readMark(text: string): Mark | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** What is stored of each sliver besides its root: its mark, keys and configurations. Folders are named by the mark. */
export class SliverFolders {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async prepare(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o711 });
  }

  path(mark: string, ...parts: readonly string[]): string {
    return join(this.#folder, mark, ...parts);
  }

  /** The folder of its API socket: processes of its login may open the socket, and none inside may replace it. */
  socket(mark: string): string {
    return this.path(mark, "api");
  }

  async makeSocketFolder(mark: string): Promise<string> {
    const path = this.socket(mark);
    await mkdir(path, { recursive: true });
    // Under any umask: what is inside must be able to enter.
    await chmod(path, 0o755);
    return path;
  }

  async list(): Promise<string[]> {
    return readdir(this.#folder).catch(() => []);
  }

  has(mark: string): Promise<boolean> {
    return exists(this.path(mark));
  }

  /** Undefined when it is not there or cannot be read. */
  async read(mark: string): Promise<Mark | undefined> {
    const text = await readFile(this.path(mark, "mark.json"), "utf8").catch(() => undefined);
    return text === undefined ? undefined : readMark(text);
  }

  /** Durable when it resolves. */
  async write(mark: string, content: Mark): Promise<void> {
    await writeAtomic(this.path(mark, "mark.json"), markText(content));
    await syncPath(this.#folder);
  }

  /** Not durable: a sliver that is not acknowledged yet and is damaged by a loss of power is found broken and created again. */
  async draft(mark: string, content: Mark): Promise<void> {
    await mkdir(this.path(mark), { recursive: true, mode: 0o711 });
    await writeAtomic(this.path(mark, "mark.json"), markText(content), { durable: false });
  }

  async remove(mark: string): Promise<void> {
    await rm(this.path(mark), { recursive: true, force: true });
  }
}
