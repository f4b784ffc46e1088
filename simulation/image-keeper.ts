import { paths } from "@nodeyard/model";
import { type Clock, type Random, sleep } from "@nodeyard/runtime";
import { type MemoryTree, TreeError } from "@nodeyard/tree";
import type { Fault } from "./faults.ts";
import { between } from "./streams.ts";

interface Handles {
  readonly tree: MemoryTree;
  readonly clock: Clock;
  readonly random: Random;
  readonly count: (fault: Fault) => void;
}

interface Upload {
  readonly build: string;
  readonly path: string;
}

/** Between two changes of the image, milliseconds. */
const PAUSE_MS = [4_000, 25_000] as const;
/** Building it or uploading it takes this long, milliseconds. */
const WORK_MS = [200, 3_000] as const;

/** What a builder writes (spec zookeeper.md 2.4, 2.5): one image at one provider is built, uploaded, replaced and taken away. */
export class ImageKeeper {
  readonly #handles: Handles;
  readonly #image: string;
  readonly #provider: string;
  #builds = 0;
  #component: string | undefined;
  #stopping = false;
  #up: Upload | undefined;

  constructor(handles: Handles, image: string, provider: string) {
    this.#handles = handles;
    this.#image = image;
    this.#provider = provider;
  }

  async run(): Promise<void> {
    const { random, count } = this.#handles;
    await this.#register();
    while (!this.#stopping) {
      await this.#pause(PAUSE_MS);
      const before = this.#up;
      if (before === undefined || random.float() < 0.5) {
        this.#up = await this.#make();
        count(before === undefined ? "image uploaded" : "image replaced");
        // For a moment both are there, as with a real builder.
        await this.#pause(WORK_MS);
      } else {
        this.#up = undefined;
        count("image gone");
      }
      if (before !== undefined) await this.#remove(before);
      if (this.#up === undefined && random.float() < 0.3) await this.#leave();
    }
    if (this.#up === undefined) this.#up = await this.#make();
  }

  /** From now on the image stays; one that is missing is made. */
  stop(): void {
    this.#stopping = true;
  }

  /** The builder is gone for a while: nobody makes the image. */
  async #leave(): Promise<void> {
    this.#handles.count("builder gone");
    await this.#forget(this.#component!);
    await this.#pause(PAUSE_MS);
    await this.#register();
  }

  async #register(): Promise<void> {
    const component = { hostname: "builder", kind: "builder", state: "running", version: "11" };
    const { path } = await this.#create(`${paths.component("builder")}/builder`, component, true);
    this.#component = path;
  }

  async #make(): Promise<Upload> {
    const build = (++this.#builds).toString(16).padStart(32, "0");
    const path = paths.imageBuild(this.#image, build);
    const made = {
      builder: "builder",
      builder_id: "b",
      formats: "raw",
      username: "zuul",
      python_path: "auto",
    };
    await this.#create(path, { ...made, state: "building", state_time: this.#seconds() });
    await this.#pause(WORK_MS);
    await this.#set(path, { ...made, state: "ready", state_time: this.#seconds() });
    const record = { external_id: `image-${build}`, external_name: this.#image, format: "raw" };
    const up = await this.#create(
      `${path}/providers/${this.#provider}/images/`,
      { ...record, state: "uploading", state_time: this.#seconds() },
      true,
    );
    await this.#pause(WORK_MS);
    await this.#set(up.path, { ...record, state: "ready", state_time: this.#seconds() });
    return { build, path: up.path };
  }

  async #remove({ build, path }: Upload): Promise<void> {
    await this.#set(path, { state: "deleting", state_time: this.#seconds() });
    await this.#pause(WORK_MS);
    const root = paths.imageBuild(this.#image, build);
    for (let at = path; at.startsWith(root); at = at.slice(0, at.lastIndexOf("/"))) await this.#forget(at);
  }

  async #create(path: string, data: object, sequential = false): Promise<{ readonly path: string }> {
    const { tree } = this.#handles;
    const folders = path.slice(1).split("/").slice(0, -1);
    for (let depth = 1; depth <= folders.length; depth++)
      await tree.create(`/${folders.slice(0, depth).join("/")}`).catch((error: unknown) => {
        if (!(error instanceof TreeError) || error.code !== "tree.node_exists") throw error;
      });
    return tree.create(path, bytes(data), { sequential });
  }

  async #set(path: string, data: object): Promise<void> {
    await this.#handles.tree.set(path, bytes(data));
  }

  async #forget(path: string): Promise<void> {
    await this.#handles.tree.delete(path);
  }

  #pause([least, most]: readonly [number, number]): Promise<void> {
    const { clock, random } = this.#handles;
    return sleep(clock, between(random, least, most));
  }

  #seconds(): number {
    return this.#handles.clock.now() / 1000;
  }
}

function bytes(data: object): Uint8Array {
  return Buffer.from(JSON.stringify(data));
}
