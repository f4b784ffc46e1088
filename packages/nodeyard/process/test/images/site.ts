import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { patience } from "../../../../../testing/patience.ts";
import { type Running, Site } from "../../../cli/test/nodeyard.ts";

export interface ListedBuild {
  readonly id: string;
  readonly image: string;
  readonly state: string;
}

export interface ListedUpload {
  readonly id: string;
  readonly upload_id: string;
  readonly state: string;
  readonly external_id: string | null;
}

/** A Nodeyard of one process that builds an image by a script and uploads it to a fake cloud that is a folder. */
export class ImageSite extends Site {
  readonly images = join(this.folder, "images");
  readonly cloud = join(this.folder, "cloud");
  readonly logs = join(this.folder, "logs");

  /** `more`: lines of the configuration. */
  constructor(script: string, image = "", more = "") {
    super("");
    mkdirSync(this.images);
    const path = join(this.folder, "make-image");
    writeFileSync(path, `#!/bin/sh\nset -e\n${script}\n`);
    chmodSync(path, 0o755);
    this.write(`
${more}
images-dir: ${this.images}
build-log-dir: ${this.logs}
labels: []
diskimages:
  - {name: small, build-command: [${path}], username: tester ${image}}
providers:
  - name: cloud
    driver: fake
    cloud: c
    diskimages: [{name: small}]
    pools: []
    fake: {images: {folder: ${this.cloud}, formats: [raw]}}
`);
  }

  builds(): Promise<readonly ListedBuild[]> {
    return this.json("dib-image-list");
  }

  uploads(): Promise<readonly ListedUpload[]> {
    return this.json("image-list");
  }

  /** Names in `images-dir` that are no part of the builder itself. */
  files(): readonly string[] {
    return readdirSync(this.images)
      .filter((name) => ![".builder.lock", ".work", "builder_id.txt"].includes(name))
      .sort();
  }

  work(): readonly string[] {
    const folder = join(this.images, ".work");
    return existsSync(folder) ? readdirSync(folder) : [];
  }

  uploaded(): readonly string[] {
    return existsSync(this.cloud) ? readdirSync(this.cloud).sort() : [];
  }
}

/** The same beside a ZooKeeper; a killed builder's locks are there until its session has ended. */
export class ZooKeeperImageSite extends ImageSite {
  /** `server`: `{host: ..., port: ..., chroot: ...}`. */
  constructor(script: string, server: string, sessionSeconds: number) {
    super(script, "", `zookeeper-servers: [${server}]\nzookeeper-timeout: ${sessionSeconds}.0`);
  }

  override start(...words: readonly string[]): Running {
    return super.start("-c", this.config, ...words);
  }

  override async up(): Promise<Running> {
    const builder = this.start("builder");
    await builder.printed("the builder runs");
    return builder;
  }
}

/** Processes that carry the mark of any build of this site. */
export function buildProcesses({ images }: ImageSite): readonly number[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const environment = readFileSync(`/proc/${name}/environ`, "latin1").split("\0");
      const ours = environment.some((text) => text.startsWith(`DIB_IMAGE_FILENAME=${images}/`));
      return ours ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

export async function until(
  look: () => boolean | Promise<boolean>,
  what: string,
  running?: Running,
  looks = 600,
): Promise<void> {
  for (let left = looks * patience(); left > 0; left--) {
    if (await look()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`never: ${what}\n${running?.err ?? ""}`);
}
