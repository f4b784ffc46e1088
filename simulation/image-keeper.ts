import { paths } from "@nodeyard/model";
import { type Clock, type Random, sleep } from "@nodeyard/runtime";
import { type MemoryTree, TreeError } from "@nodeyard/tree";
import { canaryPath, decodeCanary, encodeCanary, judgeCanary, noBoots } from "nodeyard";
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

/** Few launches are of this image: most trials end by their time. */
const RULES = { launches: 4, maxAgeMs: 60_000 };
const SHARE = 0.5;
/** What a build that does not boot is called in the cloud. */
const BAD = "bad-";

/** Whether an image of the cloud is one whose machines never answer. */
export function isBad(externalId: unknown): boolean {
  return typeof externalId === "string" && externalId.startsWith(BAD);
}

/** What a builder writes (spec zookeeper.md 2.4, 2.5): one image at one provider is built, uploaded, tried, replaced and taken away. */
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
      if (before !== undefined && random.float() < 0.4) {
        await this.#tryOut(before);
        continue;
      }
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

  /** A new build beside the one that is proven, until its trial ends; half of them do not boot. */
  async #tryOut(proven: Upload): Promise<void> {
    const bad = this.#handles.random.float() < 0.5;
    const made = await this.#make(bad, (build) => this.#beginTrial(build));
    // One that nobody launched is not proven: somebody deletes it before it is the only one.
    const isPromoted = (await this.#endOfTrial()) && !bad;
    if (isPromoted) this.#up = made;
    await this.#pause(PAUSE_MS);
    await this.#remove(isPromoted ? proven : made);
  }

  async #beginTrial(candidate: string): Promise<void> {
    const { tree, clock } = this.#handles;
    const tallies = { candidate: noBoots, stable: noBoots };
    const since = clock.now();
    const canary = encodeCanary({ candidate, since, share: SHARE, tallies, rejected: [], last: null });
    const path = canaryPath(this.#image);
    if ((await tree.stat(path)) === undefined) await this.#create(path, canary);
    else await tree.set(path, canary);
  }

  /** Whether the build takes over. */
  async #endOfTrial(): Promise<boolean> {
    const { tree, clock } = this.#handles;
    const path = canaryPath(this.#image);
    for (;;) {
      await this.#pause(WORK_MS);
      const { data, stat } = await tree.get(path);
      const canary = decodeCanary(this.#image, data);
      const now = this.#stopping ? Number.POSITIVE_INFINITY : clock.now();
      const { verdict, why } = judgeCanary(canary, RULES, now);
      if (verdict === "wait" || canary.candidate === null) continue;
      const rejected = verdict === "promoted" ? [] : [canary.candidate];
      const last = { build: canary.candidate, verdict, why, at: clock.now() };
      const ended = encodeCanary({ ...canary, candidate: null, rejected, last });
      // Launchers tell meanwhile: then it is judged again.
      const isTaken = await tree.set(path, ended, { version: stat.version }).then(
        () => true,
        () => false,
      );
      if (isTaken) return verdict === "promoted";
    }
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

  /** `ready`: to be done before the build says that it is. */
  async #make(bad = false, ready: (build: string) => Promise<void> = async () => {}): Promise<Upload> {
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
    await ready(build);
    await this.#set(path, { ...made, state: "ready", state_time: this.#seconds() });
    const record = {
      external_id: `${bad ? BAD : "image-"}${build}`,
      external_name: this.#image,
      format: "raw",
      username: made.username,
      python_path: made.python_path,
    };
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

  async #create(
    path: string,
    data: object | Uint8Array,
    sequential = false,
  ): Promise<{ readonly path: string }> {
    const { tree } = this.#handles;
    const folders = path.slice(1).split("/").slice(0, -1);
    for (let depth = 1; depth <= folders.length; depth++)
      await tree.create(`/${folders.slice(0, depth).join("/")}`).catch((error: unknown) => {
        if (!(error instanceof TreeError) || error.code !== "tree.node_exists") throw error;
      });
    return tree.create(path, data instanceof Uint8Array ? data : bytes(data), { sequential });
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
