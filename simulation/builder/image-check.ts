import type { ImageEvent } from "@nodeyard/driver-fake";
import { CANARIES, decodeCanary } from "@nodeyard/model";
import type { AppliedWrite, Op } from "@nodeyard/tree";
import { Broken, Locks } from "../checks/index.ts";
import type { Fault } from "../faults.ts";

const BUILD = /^(\/nodepool\/images\/[^/]+\/builds\/[0-9a-f]{32})$/;
const UPLOAD = /^(\/nodepool\/images\/[^/]+\/builds\/[0-9a-f]{32})\/providers\/([^/]+)\/images\/(\d{10})$/;
const CONTENDER = /^(\/nodepool\/images\/.+)\/lock\/([^/]+)$/;

/** A builder learns of a node that boots an image within this time, milliseconds: one of its calls may be so late. */
const LEARNS_MS = 10_000;

interface ImageRecord {
  readonly state: string;
  readonly externalId: unknown;
}

/**
 * Checks every write of builders against the rules of images (docs/design/images.md): which lock a write needs, and what may be deleted.
 */
export class ImageCheck {
  readonly builds = new Map<string, ImageRecord>();
  readonly uploads = new Map<string, ImageRecord>();
  readonly #locks = new Locks();
  /** By the upload that a node boots: when a record first named it, monotonic milliseconds. */
  readonly #bootedSince = new Map<string, Map<string, number>>();
  /** Ids of the images that exist with their data, as of the present write. */
  readonly #whole = new Set<string>();
  readonly #events: { readonly writes: number; readonly event: ImageEvent }[] = [];
  /** Builds that failed their trial: no launch uses them. */
  #rejected: ReadonlySet<string> = new Set();
  readonly #count: (fault: Fault) => void;
  #writes = 0;

  constructor(count: (fault: Fault) => void) {
    this.#count = count;
  }

  /** A cloud's images changed when the tree had this many writes. */
  note(writes: number, event: ImageEvent): void {
    this.#events.push({ writes, event });
  }

  /** `at`: by a clock that never jumps, milliseconds. */
  take(write: AppliedWrite, at: number): void {
    this.#catchUp(this.#writes++);
    const held = this.#locks.heldBy(write.client);
    for (const [index, op] of write.ops.entries()) {
      if (op.op === "check") continue;
      const result = write.results[index];
      const path = result?.op === "create" ? result.path : op.path;
      const contender = CONTENDER.exec(path);
      if (contender !== null) this.#contend(write, op, contender[1]!, contender[2]!, at);
      else if (BUILD.test(path)) this.#build(write, op, path, held);
      else if (UPLOAD.test(path)) this.#upload(write, op, path, held, at);
      else if (path.startsWith(`${CANARIES}/`)) this.#trial(op, path);
      else if (/^\/nodepool\/nodes\/\d{10}$/.test(path)) this.#node(op, path, at);
    }
  }

  /** Builds and uploads in progress or being deleted, except those that stay because a node boots or booted from them. */
  get busy(): number {
    const uploads = [...this.uploads.values()].filter(
      ({ state }) => state === "uploading" || state === "deleting",
    );
    const builds = [...this.builds].filter(
      ([path, { state }]) => state === "building" || (state === "deleting" && !this.#isBooted(path)),
    );
    return uploads.length + builds.length;
  }

  #isBooted(build: string): boolean {
    return [...this.#bootedSince].some(([upload, nodes]) => nodes.size > 0 && upload.startsWith(`${build}/`));
  }

  /** Contenders for the locks of images, builds and uploads. */
  contenders(): readonly string[] {
    return this.#locks
      .ids()
      .flatMap((id) => this.#locks.line(id).map(({ name, client }) => `${id}/${name} of ${client}`));
  }

  #contend({ client }: AppliedWrite, op: Op, parent: string, name: string, at: number): void {
    if (op.op === "create") this.#locks.add(parent, name, client, at);
    else if (op.op === "delete") this.#locks.remove(parent, name);
  }

  #build(write: AppliedWrite, op: Op, path: string, held: ReadonlySet<string>): void {
    const folder = path.slice(0, path.lastIndexOf("/"));
    this.#checkHeld(write, path, held, [folder, path]);
    if (op.op === "delete") {
      const left = [...this.uploads.keys()].filter((upload) => upload.startsWith(`${path}/`));
      if (left.length > 0) throw new Broken("a build goes after its uploads", write, `${path}: ${left}`);
      this.builds.delete(path);
    } else if ("data" in op) this.builds.set(path, recordOf(op.data));
  }

  #upload(write: AppliedWrite, op: Op, path: string, held: ReadonlySet<string>, at: number): void {
    const [, build, provider] = UPLOAD.exec(path)!;
    const before = this.uploads.get(path);
    const folder = path.slice(0, path.lastIndexOf("/"));
    this.#checkHeld(write, path, held, [folder, path]);
    if (op.op === "delete") {
      this.uploads.delete(path);
      return;
    }
    if (!("data" in op)) return;
    const after = recordOf(op.data);
    if (after.state === "ready" && before?.state !== "ready") {
      this.#checkWhole(write, path, after);
      this.#count(this.#ready(provider!).length === 0 ? "image uploaded" : "image replaced");
    }
    if (before?.state === "ready" && after.state !== "ready") {
      if (isBuilder(write)) this.#checkMayGo(write, path, build!, provider!, at);
      if (this.#ready(provider!).length === 1) this.#count("image gone");
    }
    this.uploads.set(path, after);
  }

  /** Fenced writes (docs/design/fenced-writes.md): a builder changes only records whose lock it holds. */
  #checkHeld(write: AppliedWrite, path: string, held: ReadonlySet<string>, locks: readonly string[]): void {
    if (isBuilder(write) && !locks.some((lock) => held.has(lock)))
      throw new Broken("a builder writes what it has locked", write, path);
  }

  #checkWhole(write: AppliedWrite, path: string, { externalId }: ImageRecord): void {
    if (!this.#whole.has(String(externalId)))
      throw new Broken("an upload is ready when its image is whole", write, `${path}: ${externalId}`);
  }

  #catchUp(writes: number): void {
    while ((this.#events[0]?.writes ?? Number.POSITIVE_INFINITY) <= writes) {
      const { event } = this.#events.shift()!;
      if (event.op === "image-data") this.#whole.add(event.id);
      if (event.op === "image-delete") this.#whole.delete(event.id);
    }
  }

  /** An upload that a provider boots is not deleted, nor one that a node booted from. */
  #checkMayGo(write: AppliedWrite, path: string, build: string, provider: string, at: number): void {
    const others = this.#ready(provider).filter((upload) => upload !== path);
    const serves = this.builds.get(build)?.state === "ready" && !this.#rejected.has(idOf(build));
    if (others.length === 0 && serves) throw new Broken("the last upload of an image stays", write, path);
    for (const [node, since] of this.#bootedSince.get(path) ?? [])
      if (at - since > LEARNS_MS)
        throw new Broken("an image stays while a node has it", write, `${path}: ${node}`);
  }

  #ready(provider: string): readonly string[] {
    return [...this.uploads]
      .filter(([path, { state }]) => state === "ready" && UPLOAD.exec(path)?.[2] === provider)
      .map(([path]) => path);
  }

  #trial(op: Op, path: string): void {
    const data = "data" in op ? op.data : undefined;
    const image = path.slice(CANARIES.length + 1);
    this.#rejected = new Set(data === undefined ? [] : decodeCanary(image, data).rejected);
  }

  #node(op: Op, path: string, at: number): void {
    const image = "data" in op ? imageOf(op.data) : undefined;
    for (const [upload, nodes] of this.#bootedSince) if (upload !== image) nodes.delete(path);
    if (image === undefined) return;
    const nodes = this.#bootedSince.get(image) ?? new Map<string, number>();
    if (!nodes.has(path)) nodes.set(path, at);
    this.#bootedSince.set(image, nodes);
  }
}

function idOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function isBuilder({ client, sessionEnd }: AppliedWrite): boolean {
  return client.startsWith("builder-") && sessionEnd !== true;
}

function recordOf(data: Uint8Array | undefined): ImageRecord {
  const { state, external_id } = JSON.parse(Buffer.from(data ?? "{}").toString()) as Record<string, unknown>;
  return { state: String(state), externalId: external_id ?? null };
}

function imageOf(data: Uint8Array | undefined): string | undefined {
  try {
    const { image_id } = JSON.parse(Buffer.from(data ?? "").toString()) as { image_id?: unknown };
    return typeof image_id === "string" && UPLOAD.test(image_id) ? image_id : undefined;
  } catch {
    return undefined;
  }
}
