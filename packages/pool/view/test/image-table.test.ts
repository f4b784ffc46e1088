import { describe, expect, test } from "vitest";
import { ImageTable } from "../src/image-table.ts";
import { interestOf } from "../src/interest.ts";
import { parsePath } from "../src/paths.ts";

const bytes = (value: object) => new TextEncoder().encode(JSON.stringify(value));
const at = (build: string, upload: string, provider = "cloud") => ({
  image: "noble",
  build,
  provider,
  upload,
});
const ready = (state_time: number) => bytes({ state: "ready", state_time, external_id: `e${state_time}` });

describe("builds and uploads of an image", () => {
  test("a launch boots the ready upload with the latest state_time, at each provider its own", () => {
    const table = new ImageTable();
    table.putUpload(at("b1", "0000000001"), ready(5));
    table.putUpload(at("b2", "0000000001"), ready(7));
    table.putUpload(at("b3", "0000000001"), bytes({ state: "failed", state_time: 9 }));
    table.putUpload(at("b3", "0000000001", "other"), bytes({ state: "uploading", state_time: 9 }));
    const facts = table.get("noble");
    expect(facts?.ready.get("cloud")).toMatchObject({ build: "b2", record: { externalId: "e7" } });
    expect([...(facts?.ready.keys() ?? [])]).toEqual(["cloud"]);
    expect([...(facts?.uploading ?? [])]).toEqual(["other"]);
    expect(table.removeUpload(at("b2", "0000000001"))).toMatchObject({ type: "image", image: "noble" });
    expect(table.get("noble")?.ready.get("cloud")?.build).toBe("b1");
  });

  test("counts builds by state, knows a pause, and forgets an image of which nothing is left", () => {
    const table = new ImageTable();
    table.putBuild("noble", "b1", bytes({ state: "building" }));
    table.putBuild("noble", "b2", bytes({ state: "failed" }));
    table.setPaused("noble", true);
    expect(table.get("noble")).toMatchObject({ builds: { building: 1, ready: 0, failed: 1 }, paused: true });
    table.removeBuild("noble", "b1");
    table.putBuild("noble", "b2", new Uint8Array());
    expect(table.setPaused("noble", false)).toEqual({ type: "image", image: "noble" });
    expect([...table.names()]).toEqual([]);
  });
});

test("a request is reported, and makes the image known", () => {
  const table = new ImageTable();
  expect(table.setRequested("noble", true)).toMatchObject({ type: "image", image: "noble" });
  expect([table.requested("noble"), ...table.names()]).toEqual([true, "noble"]);
  expect(table.setRequested("noble", false)).toEqual({ type: "image", image: "noble" });
  expect([table.requested("noble"), ...table.names()]).toEqual([false]);
});

describe("paths of images", () => {
  const root = "/nodepool/images/noble";
  test.each([
    [root, "image-folder", "none"],
    [`${root}/pause`, "image-pause", "name"],
    [`${root}/request-build`, "image-request", "data"],
    [`${root}/builds`, "image-folder", "none"],
    [`${root}/builds/lock`, "image-lock", "none"],
    [`${root}/builds/lock/0__lock__0000000001`, "image-lock", "none"],
    [`${root}/builds/b1`, "image-build", "data"],
    [`${root}/builds/b1/lock`, "image-lock", "none"],
    [`${root}/builds/b1/providers`, "image-folder", "none"],
    [`${root}/builds/b1/providers/cloud`, "image-provider", "none"],
    [`${root}/builds/b1/providers/cloud/images`, "image-folder", "none"],
    [`${root}/builds/b1/providers/cloud/images/lock`, "image-lock", "none"],
    [`${root}/builds/b1/providers/cloud/images/0000000001`, "image-upload", "data"],
    [`${root}/builds/b1/providers/cloud/images/0000000001/lock`, "image-lock", "none"],
  ])("%s is %s", (path, kind, interest) => {
    expect(parsePath(path).kind).toBe(kind);
    expect(interestOf(path)).toBe(interest);
  });
});
