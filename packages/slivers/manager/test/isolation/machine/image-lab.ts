import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import type { ImageTrialRules } from "../../../src/core/image-trials.ts";
import type { ImageSource } from "../../../src/isolation/storage/edge/archives.ts";
import { Images } from "../../../src/isolation/storage/edge/images.ts";
import { Pool } from "../../../src/isolation/storage/edge/pool.ts";
import { type TarMember, tarOf } from "./tar.ts";

const { signal } = new AbortController();

/** What an image must have; as diskimage-builder writes names. */
export const ROOT: readonly TarMember[] = [
  { name: "./usr/sbin/sshd", content: "sshd" },
  { name: "./usr/bin/setpriv", content: "setpriv" },
];

/** A real pool in a folder of its own, and archives beside it. */
export class ImageLab {
  readonly folder = mkdtempSync(join(tmpdir(), "nodeyard-images-"));
  /** What pools and images said. */
  readonly said: string[] = [];
  readonly #told = { clock: systemClock, onProgress: (line: string) => void this.said.push(line) };
  readonly pool = this.newPool();

  prepare(): Promise<void> {
    return this.pool.prepare(signal);
  }

  async stop(): Promise<void> {
    await this.pool.leave(signal);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** As a new process would open it. */
  newPool(bytes = 268_435_456): Pool {
    return new Pool(join(this.folder, "pool"), join(this.folder, "pool.img"), bytes, this.#told);
  }

  images(sources: Readonly<Record<string, ImageSource>>, trial?: ImageTrialRules): Images {
    return new Images(this.pool, { sources, trial, cache: join(this.folder, "cache"), ...this.#told });
  }

  archive(members: readonly TarMember[], name = "image.tar"): string {
    const path = join(this.folder, name);
    writeFileSync(path, tarOf(members));
    return path;
  }

  /** Names of all that is unpacked, whole or not. */
  inPool(): string[] {
    return readdirSync(join(this.folder, "pool", "images")).sort();
  }
}
