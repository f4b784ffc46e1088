import {
  decodeImageBuild,
  decodeImageUpload,
  type ImageBuildRecord,
  type ImageBuildState,
  type ImageUploadRecord,
} from "@nodeyard/model";
import type { ImageFacts, ImageUploadEntry, ViewEvent } from "./entries.ts";

interface Image {
  /** By build id. */
  readonly builds: Map<string, ImageBuildRecord>;
  /** By `<build>/<provider>/<number>`. */
  readonly uploads: Map<string, ImageUploadEntry>;
  /** Whether the znode `pause` of the image stands; `requested`: whether `request-build` does. */
  paused: boolean;
  requested: boolean;
}

/** Where an upload stands. */
export interface UploadAt {
  readonly image: string;
  readonly build: string;
  readonly provider: string;
  /** The upload's number, as ten digits. */
  readonly upload: string;
}

/**
 * Builds and uploads of diskimages, reported as one picture per image: they are few and change seldom, and what depends on
 * them asks for the image as a whole.
 */
export class ImageTable {
  readonly #images = new Map<string, Image>();
  /** What `#images` says, for each image that has anything; made anew with each change. */
  readonly #facts = new Map<string, ImageFacts>();

  /** Undefined for an image of which the tree knows nothing. */
  get(image: string): ImageFacts | undefined {
    return this.#facts.get(image);
  }

  names(): IterableIterator<string> {
    return this.#facts.keys();
  }

  /** By build id. */
  builds(image: string): ReadonlyMap<string, ImageBuildRecord> {
    return this.#images.get(image)?.builds ?? new Map();
  }

  /** Whether a build is requested. */
  requested(image: string): boolean {
    return this.#images.get(image)?.requested ?? false;
  }

  /** In all states and at all providers. */
  uploads(image: string): Iterable<ImageUploadEntry> {
    return this.#images.get(image)?.uploads.values() ?? [];
  }

  /** Throws a RecordError for a record that makes no sense. Empty data is no record. */
  putBuild(image: string, build: string, data: Uint8Array): ViewEvent | undefined {
    if (data.length === 0) return this.removeBuild(image, build);
    const record = decodeImageBuild(build, data);
    return this.#change(image, ({ builds }) => builds.set(build, record));
  }

  /** Undefined: nothing of the image was known before or is now. */
  removeBuild(image: string, build: string): ViewEvent | undefined {
    return this.#change(image, ({ builds }) => builds.delete(build));
  }

  /** As `putBuild`, for an upload. */
  putUpload(at: UploadAt, data: Uint8Array): ViewEvent | undefined {
    if (data.length === 0) return this.removeUpload(at);
    const record = decodeImageUpload(at.upload, data);
    const { image, build, provider } = at;
    return this.#change(image, ({ uploads }) => uploads.set(keyOf(at), { image, build, provider, record }));
  }

  removeUpload(at: UploadAt): ViewEvent | undefined {
    return this.#change(at.image, ({ uploads }) => uploads.delete(keyOf(at)));
  }

  setPaused(image: string, paused: boolean): ViewEvent | undefined {
    return this.#change(image, (known) => {
      known.paused = paused;
    });
  }

  setRequested(image: string, requested: boolean): ViewEvent | undefined {
    return this.#change(image, (known) => {
      known.requested = requested;
    });
  }

  /** Applies a change and describes the image anew; an image of which nothing is left is forgotten. */
  #change(image: string, change: (known: Image) => void): ViewEvent | undefined {
    const known = this.#images.get(image) ?? {
      builds: new Map(),
      uploads: new Map(),
      paused: false,
      requested: false,
    };
    this.#images.set(image, known);
    change(known);
    if (known.builds.size === 0 && known.uploads.size === 0 && !known.paused && !known.requested) {
      this.#images.delete(image);
      return this.#facts.delete(image) ? { type: "image", image } : undefined;
    }
    const after = describe(known);
    this.#facts.set(image, after);
    return { type: "image", image, after };
  }
}

function keyOf({ build, provider, upload }: UploadAt): string {
  return `${build}/${provider}/${upload}`;
}

/** The image of a label is the ready upload with the latest `state_time` (docs/contract/records.md, "Image upload"). */
function describe({ builds, uploads, paused }: Image): ImageFacts {
  const ready = new Map<string, ImageUploadEntry>();
  const uploading = new Set<string>();
  for (const entry of uploads.values()) {
    if (entry.record.state === "uploading") uploading.add(entry.provider);
    if (entry.record.state !== "ready") continue;
    const best = ready.get(entry.provider);
    if (best === undefined || isNewer(entry, best)) ready.set(entry.provider, entry);
  }
  const count = (state: ImageBuildState) =>
    [...builds.values()].filter((build) => build.state === state).length;
  return {
    ready,
    uploading,
    builds: { building: count("building"), ready: count("ready"), failed: count("failed") },
    paused,
  };
}

/** Which of two uploads is launched. Two of the same moment are ordered by their path, so that all launchers boot the same one. */
export function isNewer(a: ImageUploadEntry, b: ImageUploadEntry): boolean {
  const [left, right] = [timeOf(a.record), timeOf(b.record)];
  if (left !== right) return left > right;
  return `${a.build}/${a.record.id}` > `${b.build}/${b.record.id}`;
}

/** Records of old builders may lack the time; they count as the oldest. */
function timeOf({ stateTime }: ImageUploadRecord): number {
  return stateTime ?? 0;
}
