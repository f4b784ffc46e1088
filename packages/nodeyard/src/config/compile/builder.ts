import { Reader } from "@nodeyard/driver";
import { split } from "shlex";
import type {
  BuilderSettings,
  CanarySettings,
  DiskimageConfig,
  ImageSettings,
  UploadedImageSettings,
  UploadSettings,
} from "../types.ts";
import { chainOf } from "./diskimages.ts";

/**
 * What builders work by (docs/contract/config.md, "Diskimages" and docs/contract/config.md, "Images of a provider"). Names and
 * parents were judged with the diskimages.
 */
export function compileBuilder(
  main: Reader,
  diskimages: ReadonlyMap<string, DiskimageConfig>,
  secure: Reader | undefined,
): BuilderSettings {
  const entries = new Map(
    ownReader(main)
      .mappings("diskimages", true)
      .map((from) => [from.text("name", ""), from]),
  );
  const secrets = new Map(
    (secure?.mappings("diskimages", true) ?? []).map((from) => [
      from.text("name", ""),
      texts(from.mapping("env-vars")),
    ]),
  );
  const retention = main.number("build-log-retention", 7);
  return {
    imagesDir: main.text("images-dir", null) || null,
    elementsDir: main.text("elements-dir", null) || null,
    logDir: main.text("build-log-dir", null) || "/var/log/nodepool/builds",
    logRetention: retention < 0 ? Number.POSITIVE_INFINITY : Math.max(1, retention),
    images: new Map(
      Array.from(diskimages, ([name, image]) => [
        name,
        imageSettings(image, chainOf(entries.get(name)!, entries, false), secrets.get(name) ?? {}),
      ]),
    ),
    uploads: uploadSettings(main),
  };
}

/** Keys that only builders read: what is wrong with others is told where they are compiled for everyone. */
const OWN =
  /^(formats|keep-formats|delete-after-upload|elements|env-vars|rebuild-age|rebuild-on-change|canary|build-timeout|pause|dib-cmd|build-command|metadata)$/;

/** Tells what is wrong with those keys, once, although children read their parents' again. */
function ownReader(main: Reader): Reader {
  const told = new Set<string>();
  return new Reader(main.raw, [], (finding) => {
    const [list, index, key, ...more] = finding.path;
    const id = JSON.stringify([finding.path, finding.message]);
    if (list !== "diskimages" || !OWN.test(String(key)) || told.has(id)) return;
    told.add(id);
    const at = [list, index!, key!, ...more].join(".");
    if (finding.severity === "error") main.error("diskimages", `${at} ${finding.message}`);
    else main.warn("diskimages", `${at} ${finding.message}`);
  });
}

function imageSettings(
  image: DiskimageConfig,
  chain: readonly Reader[],
  secrets: Readonly<Record<string, string>>,
): ImageSettings {
  const leaf = chain.at(-1)!;
  const last = <T>(read: (from: Reader) => T | null, missing: T): T => {
    for (const from of chain.toReversed()) {
      const value = read(from);
      if (value !== null) return value;
    }
    return missing;
  };
  const list = (key: string) =>
    last((from) => (listIn(from, key).length > 0 ? listIn(from, key) : null), [] as readonly string[]);
  const seconds = (key: string, missing: number) =>
    last((from) => from.number(key, 0) || null, missing) * 1000;
  const command = list("build-command");
  if (command.length === 0 && leaf.has("build-command"))
    leaf.warn(
      "build-command",
      "is empty: diskimage-builder makes the image; write a command, or remove the key",
    );
  return {
    ...image,
    formats: list("formats"),
    keepFormats: list("keep-formats"),
    deleteAfterUpload: last(
      (from) => (from.has("delete-after-upload") ? from.flag("delete-after-upload", false) : null),
      false,
    ),
    elements: chain.flatMap((from) => listIn(from, "elements")),
    env: Object.assign(
      {},
      ...chain.map((from) => texts(from.mapping("env-vars"))),
      secrets,
    ) as ImageSettings["env"],
    release: last((from) => textOf(from.raw.release) || null, ""),
    rebuildAgeMs: seconds("rebuild-age", 86_400),
    rebuildOnChange: last(
      (from) => (from.has("rebuild-on-change") ? from.flag("rebuild-on-change", false) : null),
      false,
    ),
    canary: last((from) => canarySettings(from), null),
    buildTimeoutMs: seconds("build-timeout", 28_800),
    // As the old loader has it: a child cannot take back its parent's pause.
    paused: chain.some((from) => from.flag("pause", false)),
    dibCommand: words(
      chain,
      last((from) => from.text("dib-cmd", null) || null, "disk-image-create"),
    ),
    command: command.length > 0 ? command : null,
    metadata: texts(leaf.mapping("metadata")),
  };
}

/** Null: the entry says nothing of it. */
function canarySettings(image: Reader): CanarySettings | null {
  if (image.mapping("canary") === null) return null;
  const from = image.inner("canary");
  const percent = from.number("percent", 10);
  if (percent <= 0 || percent > 50) from.error("percent", `is ${percent}; write 1 to 50`);
  return {
    share: Math.min(50, Math.max(1, percent)) / 100,
    launches: Math.max(1, Math.floor(from.number("launches", 20))),
    maxAgeMs: from.milliseconds("max-age", 86_400),
  };
}

function listIn(from: Reader, key: string): readonly string[] {
  return from.has(key) ? from.texts(key) : [];
}

/** Split as a shell would, which runs nothing. */
function words(chain: readonly Reader[], command: string): readonly string[] {
  try {
    const all = split(command);
    if (all.length > 0) return all;
  } catch {
    // Told below: the same sentence for both.
  }
  chain
    .at(-1)!
    .error("dib-cmd", `is ${JSON.stringify(command)}, which has an open quote or no word; close it`);
  return ["disk-image-create"];
}

/** Drivers judge these entries. */
function uploadSettings({ raw }: Reader): ReadonlyMap<string, UploadSettings> {
  const silent = new Reader(raw, [], () => {});
  return new Map(
    silent.mappings("providers", true).map((from) => [
      from.text("name", ""),
      {
        nameFormat: from.text("image-name-format", null) || "{image_name}-{timestamp}",
        postUploadHook: from.text("post-upload-hook", null) || null,
        images: new Map(from.has("diskimages") ? from.mappings("diskimages", true).map(uploadedImage) : []),
      },
    ]),
  );
}

function uploadedImage(from: Reader): readonly [string, UploadedImageSettings] {
  const metadata = { ...texts(from.mapping("meta")), ...texts(from.mapping("tags")) };
  return [from.text("name", ""), { paused: from.flag("pause", false), metadata, own: from.raw }];
}

function texts(mapping: Readonly<Record<string, unknown>> | null): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(mapping ?? {}).map(([key, value]) => [key, textOf(value)]));
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
