import { chmod, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncPath, writeAtomic } from "../../edge/atomic.ts";
import { exists } from "../../storage/edge/pool.ts";
import { type Mark, markText, readMark } from "../mark.ts";

/** What is kept of each sliver besides its root: its mark, keys and configurations. Folders carry the mark's name. */
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

  /** Of its API socket, which whoever speaks for it inside may open and nobody inside may replace. */
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

  /** Of a sliver that nobody was promised yet: what a loss of power takes of it is found broken, and made anew. */
  async draft(mark: string, content: Mark): Promise<void> {
    await mkdir(this.path(mark), { recursive: true, mode: 0o711 });
    await writeAtomic(this.path(mark, "mark.json"), markText(content), { durable: false });
  }

  async remove(mark: string): Promise<void> {
    await rm(this.path(mark), { recursive: true, force: true });
  }
}
