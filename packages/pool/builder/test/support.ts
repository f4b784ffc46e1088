import type { ImageSettings } from "@nodeyard/config";
import {
  changeImageUpload,
  type ImageBuildRecord,
  type ImageBuildState,
  type ImageUploadState,
  newImageBuild,
  newImageUpload,
} from "@nodeyard/model";
import type { RetireFacts, Retirement } from "../src/core/retire.ts";

export const image: ImageSettings = {
  name: "noble",
  username: "zuul",
  pythonPath: "auto",
  shellType: null,
  formats: [],
  keepFormats: [],
  deleteAfterUpload: false,
  elements: ["ubuntu-minimal", "vm"],
  env: { DIB_RELEASE: "x", NODEYARD_BUILD: "forged" },
  release: "noble",
  rebuildAgeMs: 1,
  rebuildOnChange: false,
  canary: null,
  buildTimeoutMs: 1,
  paused: false,
  dibCommand: ["/opt/my dib/disk-image-create", "--quiet"],
  command: null,
  metadata: {},
};

export const HOUR = 3_600_000;

export function build(
  id: string,
  state: ImageBuildState,
  atMs: number,
  formats: readonly string[] = ["qcow2"],
): ImageBuildRecord {
  const record = newImageBuild(id, { builder: "host", builderId: "b", formats }, atMs / 1000);
  return { ...record, state };
}

export function upload(at: string, provider: string, number: number, state: ImageUploadState, ms: number) {
  const fresh = newImageUpload({ username: null, pythonPath: null, shellType: null }, 0);
  const record = { ...changeImageUpload(fresh, { state }, ms / 1000), id: String(number).padStart(10, "0") };
  return { build: at, provider, record };
}

type World = Pick<RetireFacts, "builds" | "uploads">;

/** The world after `end` was carried out as the janitor does. */
export function after({ builds, uploads }: World, end: Retirement): World {
  const settled = end.do.startsWith("settle");
  if (!("upload" in end)) {
    if (end.do === "remove-build") return { builds: builds.filter(({ id }) => id !== end.build), uploads };
    const state = settled ? ("failed" as const) : ("deleting" as const);
    return { builds: builds.map((one) => (one.id === end.build ? { ...one, state } : one)), uploads };
  }
  const is = (one: World["uploads"][number]) =>
    one.build === end.build && one.provider === end.provider && one.record.id === end.upload;
  if (!settled) return { builds, uploads: uploads.filter((one) => !is(one)) };
  const failed = { state: "failed" as const };
  return {
    builds,
    uploads: uploads.map((one) => (is(one) ? { ...one, record: { ...one.record, ...failed } } : one)),
  };
}
