import { chmod, mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { jsonOrUndefined, syncPath, tail } from "@nodeyard/runtime";
import { RESOURCES, type Rspec } from "@nodeyard/sliver-protocol";
import { z } from "zod";
import { together, writeAtomic } from "../../edge/files.ts";
import type { Volume } from "../../storage/caches.ts";

/** The end of a console that is shown, bytes. */
const CONSOLE_TAIL = 64 * 1024;

const whole = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const schema = z.object({
  v: z.literal(1),
  name: z.string(),
  generation: whole,
  /** Kind of its root. */
  root: z.enum(["account", "container"]),
  /** The image that its root is a copy of. */
  image: z.object({ name: z.string(), digest: z.string(), tried: z.boolean().default(false) }).optional(),
  /** Disk limit of its root in KiB. */
  disk: whole,
  /** Devices that it has for itself. */
  devices: z.array(z.string()).optional(),
  /** Its processes are suspended by its document, not by an operator. */
  held: z.boolean().optional(),
  /** Its copies of caches, and how each began. */
  volumes: z.array(z.custom<Volume>()).optional(),
  /** How often it was started; counted only with copies of caches. */
  starts: whole.default(0),
  /** Processes killed for lack of memory in earlier groups of the sliver; each start makes new groups. */
  memoryKills: whole.default(0),
  /** False until the sliver can be started. After a crash such a sliver is made again. */
  made: z.boolean(),
  /** Absent also when an earlier version of this program with fewer resources wrote it: then it is applied again. */
  applied: z
    .strictObject({
      digest: z.string(),
      effective: z
        .record(z.string(), whole)
        .refine((value) => RESOURCES.every((name) => value[name] !== undefined), "lacks a resource")
        .transform((value) => value as Rspec),
    })
    .optional()
    .catch(undefined),
});

/** Stored facts of a sliver. Its folder's name contains index and incarnation. */
export type Mark = z.output<typeof schema>;

/** Stored files of each sliver besides its root: its mark, keys and configurations. The mark's name is the folder's name. */
export class SliverFolders {
  readonly #folder: string;
  /** Marks that were read, with the inode and the time of change of their files: each write makes a new file. */
  readonly #known = new Map<string, { readonly file: string; readonly mark: Mark | undefined }>();
  /** An empty folder, on which LXC's process sees that of its sliver. */
  readonly seen: string;

  /** `folder`: the machine's, for all files of slivers. */
  constructor(folder: string) {
    this.#folder = join(folder, "slivers");
    this.seen = join(folder, "seen");
  }

  async prepare(): Promise<void> {
    for (const folder of [this.#folder, this.seen]) await mkdir(folder, { recursive: true, mode: 0o711 });
  }

  path(mark: string, ...parts: readonly string[]): string {
    return join(this.#folder, mark, ...parts);
  }

  /** Folder of the API socket. Processes of the sliver's login can open the socket, but no process inside can replace it. */
  socket(mark: string): string {
    return this.path(mark, "api");
  }

  async makeSocketFolder(mark: string): Promise<void> {
    const path = this.socket(mark);
    await mkdir(path, { recursive: true });
    // chmod, because the umask may be stricter, and processes inside must be able to enter.
    await chmod(path, 0o755);
  }

  /** File of its console; the part before is in a file of the same name and `.1`. */
  console(mark: string): string {
    return this.path(mark, "console.log");
  }

  /** The end of its console; null when it never had one. */
  async readConsole(mark: string): Promise<string | null> {
    const file = this.console(mark);
    const parts = [await tail(`${file}.1`, CONSOLE_TAIL), await tail(file, CONSOLE_TAIL)];
    return parts.every((part) => part === undefined) ? null : parts.join("").slice(-CONSOLE_TAIL);
  }

  async list(): Promise<string[]> {
    return readdir(this.#folder).catch(() => []);
  }

  /** Undefined when the mark is missing, or damaged: then the sliver exists and is broken. */
  async read(mark: string): Promise<Mark | undefined> {
    const path = this.path(mark, "mark.json");
    const found = await stat(path, { bigint: true }).catch(() => undefined);
    const file = `${found?.ino} ${found?.ctimeNs}`;
    const known = this.#known.get(mark);
    if (found !== undefined && known?.file === file) return known.mark;
    const text = await readFile(path, "utf8").catch(() => undefined);
    const read = text === undefined ? undefined : schema.safeParse(jsonOrUndefined(text)).data;
    // A file that could not be read now, for want of descriptors, is read at the next look.
    if (found === undefined || text === undefined) this.#known.delete(mark);
    else this.#known.set(mark, { file, mark: read });
    return read;
  }

  /** Durable when it resolves. */
  async write(mark: string, content: Mark): Promise<void> {
    // Its folder is older than this mark.
    await together(this.#write(mark, content, true), syncPath(this.#folder));
  }

  /** Not durable: a sliver that is not acknowledged yet and is damaged by power loss is found as broken and made again. */
  async draft(mark: string, content: Mark): Promise<void> {
    await mkdir(this.path(mark), { recursive: true, mode: 0o711 });
    await this.#write(mark, content, false);
  }

  #write(mark: string, content: Mark, durable: boolean): Promise<void> {
    return writeAtomic(this.path(mark, "mark.json"), `${JSON.stringify(content, undefined, 2)}\n`, {
      durable,
    });
  }

  async remove(mark: string): Promise<void> {
    this.#known.delete(mark);
    await rm(this.path(mark), { recursive: true, force: true });
  }
}
