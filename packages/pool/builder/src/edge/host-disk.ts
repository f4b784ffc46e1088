import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import {
  appendFile,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  statfs,
  writeFile,
} from "node:fs/promises";
import { join, resolve } from "node:path";
import type { ImageSettings } from "@nodeyard/config";
import { messageOf, syncPath } from "@nodeyard/runtime";
import {
  baseName,
  draftName,
  formatsIn,
  intentName,
  isDraft,
  isFileOf,
  logsToPrune,
  parseIntentName,
} from "../core/files.ts";
import { BuilderError } from "../errors.ts";
import type { BuildCommand } from "../runs/back-ends.ts";
import type { Disk, FileFacts, Intent, LocalBuild, Running } from "../runs/disk.ts";
import { runHook } from "./hook.ts";
import { reclaim } from "./leftovers.ts";
import { type Isolation, startRun } from "./run.ts";
import { digestSources } from "./sources.ts";

/** Of a log that is read for its last lines. */
const TAIL_BYTES = 8_192;

/** The builder's disk on this host; what each method promises is said at `Disk`. `folder` must exist. */
export class HostDisk implements Disk {
  readonly folder: string;
  readonly #isolation: Isolation;

  constructor(folder: string, isolation: Isolation) {
    this.folder = resolve(folder);
    this.#isolation = isolation;
  }

  /**
   * As the constructor, and removes drafts of intents. A builder that was killed while it stored an intent leaves the draft, which no
   * record and no intent names. The caller holds the folder's lock, so no other builder is writing one.
   */
  static async open(folder: string, isolation: Isolation): Promise<HostDisk> {
    const disk = new HostDisk(folder, isolation);
    for (const name of await readdir(disk.folder))
      if (isDraft(name)) await rm(join(disk.folder, name), { force: true });
    return disk;
  }

  async builderId(random: { uuid(): string }): Promise<string> {
    const path = join(this.folder, "builder_id.txt");
    const known = await readFile(path, "utf8").catch(ignoreMissing);
    // Kept for the life of the folder: records of builds name it, and a new id would make them another host's.
    if (known !== undefined) return known;
    const id = random.uuid();
    try {
      await store(this.folder, "builder_id.txt", id);
    } catch (error) {
      throw new BuilderError(
        "builder.images_dir_unwritable",
        `cannot write to images-dir ${this.folder} (${messageOf(error)}): free disk space, or give this user permission to write`,
        { cause: error },
      );
    }
    return id;
  }

  async list(): Promise<readonly LocalBuild[]> {
    // Read once for all builds.
    const names = await readdir(this.folder);
    const found = await Promise.all(
      names.map(async (name): Promise<LocalBuild | undefined> => {
        const parsed = parseIntentName(name);
        if (parsed === undefined) return undefined;
        const base = baseName(parsed.image, parsed.build);
        const intent = await this.#intent(name, parsed);
        return intent && { base, intent, formats: formatsIn(base, names) };
      }),
    );
    return found.filter((build) => build !== undefined);
  }

  async begin(intent: Intent): Promise<void> {
    await store(this.folder, intentName(baseName(intent.image, intent.build)), JSON.stringify(intent));
    // After the intent: a folder without one would be nobody's.
    await mkdir(intent.work, { recursive: true, mode: 0o755 });
  }

  async adopt(intent: Intent): Promise<boolean> {
    const base = baseName(intent.image, intent.build);
    if (!(await readdir(this.folder)).some((name) => isFileOf(base, name))) return false;
    await store(this.folder, intentName(base), JSON.stringify(intent));
    return true;
  }

  sources(image: ImageSettings, elementsDir: string | null): Promise<string> {
    return digestSources(image, elementsDir);
  }

  start(command: BuildCommand, intent: Intent, log: string): Promise<Running> {
    return startRun({ ...command, cwd: intent.work, log, isolation: this.#isolation });
  }

  async settle(base: string, formats: readonly string[]): Promise<readonly string[]> {
    const missing: string[] = [];
    for (const format of formats) {
      const file = await open(join(this.folder, `${base}.${format}`)).catch(ignoreMissing);
      if (file === undefined || (await file.stat()).size === 0) missing.push(format);
      else await file.sync();
      await file?.close();
    }
    await syncPath(this.folder);
    return missing;
  }

  reclaim(intent: Intent): Promise<void> {
    return reclaim(intent, join(this.folder, baseName(intent.image, intent.build)));
  }

  async remove(base: string): Promise<void> {
    await this.#removeNames((name) => isFileOf(base, name));
    // Last: a removal that is cut off before leaves the proof for the next one.
    await rm(join(this.folder, intentName(base)), { force: true });
    await syncPath(this.folder);
  }

  async removeFormats(base: string, formats: readonly string[]): Promise<void> {
    const suffixes = formats.flatMap((format) => [format, `${format}.md5`, `${format}.sha256`]);
    await this.#removeNames((name) => suffixes.some((suffix) => name === `${base}.${suffix}`));
  }

  async describe(base: string, format: string, signal: AbortSignal): Promise<FileFacts> {
    const path = join(this.folder, `${base}.${format}`);
    const { size } = await stat(path);
    const beside = async (kind: string, digits: number) => {
      const sum = (await readFile(`${path}.${kind}`, "utf8").catch(ignoreMissing))?.slice(0, digits);
      return sum !== undefined && new RegExp(`^[0-9a-f]{${digits}}$`).test(sum) ? sum : undefined;
    };
    // diskimage-builder writes them with `--checksum`; reading an image of some GiB twice is worth avoiding.
    const [md5, sha256] = [await beside("md5", 32), await beside("sha256", 64)];
    if (md5 !== undefined && sha256 !== undefined) return { path, size, md5, sha256 };
    const hashes = [createHash("md5"), createHash("sha256")] as const;
    for await (const bytes of createReadStream(path, { signal, highWaterMark: 1 << 20 }))
      for (const hash of hashes) hash.update(bytes as Uint8Array);
    return { path, size, md5: hashes[0].digest("hex"), sha256: hashes[1].digest("hex") };
  }

  async used(intent: Intent): Promise<number> {
    const base = baseName(intent.image, intent.build);
    const names = (await readdir(this.folder)).filter((name) => isFileOf(base, name));
    let bytes = 0;
    for (const name of names) bytes += await sizeOf(join(this.folder, name));
    return bytes;
  }

  allocated(base: string, format: string): Promise<number> {
    return sizeOf(join(this.folder, `${base}.${format}`));
  }

  async free(): Promise<number> {
    const { bavail, bsize } = await statfs(this.folder);
    return bavail * bsize;
  }

  async newLog(folder: string, image: string, build: string, keep: number): Promise<string> {
    await mkdir(folder, { recursive: true });
    const logs = await Promise.all(
      (await readdir(folder)).map(async (name) => ({
        name,
        mtimeMs: (await stat(join(folder, name)).catch(ignoreMissing))?.mtimeMs ?? 0,
      })),
    );
    for (const name of logsToPrune(image, logs, keep)) await rm(join(folder, name), { force: true });
    const path = join(resolve(folder), `${baseName(image, build)}.log`);
    await writeFile(path, "");
    return path;
  }

  async appendLog(path: string, line: string): Promise<void> {
    await appendFile(path, `${line}\n`);
  }

  async tail(path: string): Promise<string> {
    await using file = await open(path).catch(ignoreMissing);
    if (file === undefined) return "";
    const { size } = await file.stat();
    const length = Math.min(size, TAIL_BYTES);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString();
  }

  hook(path: string, args: readonly string[], signal: AbortSignal) {
    return runHook(path, args, signal);
  }

  /**
   * The intent in a file; undefined for one that is not sound. An unreadable intent proves no ownership, so the files that it may
   * belong to are left alone.
   */
  async #intent(
    name: string,
    wanted: { readonly image: string; readonly build: string },
  ): Promise<Intent | undefined> {
    const text = await readFile(join(this.folder, name), "utf8").catch(ignoreMissing);
    try {
      const intent = JSON.parse(text ?? "") as Partial<Intent>;
      const sound =
        intent.v === 1 &&
        intent.image === wanted.image &&
        intent.build === wanted.build &&
        typeof intent.installation === "string" &&
        typeof intent.work === "string" &&
        (intent.sources === undefined || typeof intent.sources === "string") &&
        // A folder that we would remove with all that is in it.
        resolve(intent.work).startsWith(`${this.folder}/.work/`);
      return sound ? (intent as Intent) : undefined;
    } catch {
      return undefined;
    }
  }

  /** Only folders of manifests are removed with what is in them. */
  async #removeNames(which: (name: string) => boolean): Promise<void> {
    for (const name of await readdir(this.folder))
      if (which(name)) await rm(join(this.folder, name), { recursive: name.endsWith(".d"), force: true });
  }
}

/** Whole or not at all, and on the disk when it resolves. */
async function store(folder: string, name: string, text: string): Promise<void> {
  const path = join(folder, name);
  const draft = join(folder, draftName(name));
  const file = await open(draft, "w", 0o644);
  try {
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    // A full disk: each try would leave one more, under another name.
    await rm(draft, { force: true });
    throw error;
  }
  await syncPath(folder);
}

/** Bytes that are really taken: images are sparse. */
async function sizeOf(path: string): Promise<number> {
  const facts = await lstat(path).catch(ignoreMissing);
  return facts?.isFile() ? facts.blocks * 512 : 0;
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
  return undefined;
}
