import { describe, expect, test } from "vitest";
import {
  changeImageBuild,
  changeImageUpload,
  decodeImageBuild,
  decodeImageUpload,
  encodeImageBuild,
  encodeImageUpload,
  newImageBuild,
  newImageUpload,
  paths,
} from "../src/index.ts";

const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

describe("image records", () => {
  test("a build as a builder writes it at the end, and the defaults of absent keys", () => {
    const build = decodeImageBuild(
      "a".repeat(32),
      bytes({ state: "ready", formats: "qcow2,raw", builder: "b" }),
    );
    expect(build).toMatchObject({ state: "ready", formats: ["qcow2", "raw"], builder: "b", builderId: null });
    expect(build).toMatchObject({ username: "zuul", pythonPath: "/usr/bin/python2", shellType: null });
    expect(decodeImageBuild("0000000001", bytes({ state: "building" })).formats).toEqual([]);
  });

  test("an upload keeps whatever the cloud calls it", () => {
    const id = { id: "x", region: "r" };
    const upload = decodeImageUpload(
      "0000000001",
      bytes({ state: "ready", external_id: id, username: null }),
    );
    expect(upload).toMatchObject({ externalId: id, username: null, pythonPath: "/usr/bin/python2" });
    expect(paths.imageUpload("i", "b", "p", upload.id)).toBe(
      "/nodepool/images/i/builds/b/providers/p/images/0000000001",
    );
  });

  test("an unknown state and an empty record are errors with a code", () => {
    expect(() => decodeImageUpload("1", bytes({ state: "odd" }))).toThrow(/state is "odd"/);
    expect(() => decodeImageBuild("1", new Uint8Array())).toThrow(/no data/);
  });
});

describe("what a builder writes", () => {
  test("formats are one text, sorted; what it does not know survives; state moves state_time", () => {
    const fresh = newImageBuild("b1", { builder: "host", builderId: "id", formats: ["raw", "qcow2"] }, 5);
    const read = decodeImageBuild("b1", encodeImageBuild(fresh));
    expect(JSON.parse(new TextDecoder().decode(encodeImageBuild(fresh)))).toEqual({
      state: "building",
      state_time: 5,
      builder: "host",
      builder_id: "id",
      formats: "qcow2,raw",
      username: null,
      python_path: null,
      shell_type: null,
    });
    expect(read.formats).toEqual(["qcow2", "raw"]);
    const odd = decodeImageBuild("b1", new TextEncoder().encode('{"state": "building", "later": 1e99}'));
    const ended = changeImageBuild(odd, { state: "ready", formats: ["raw"] }, 9);
    expect(new TextDecoder().decode(encodeImageBuild(ended))).toBe(
      '{"state": "ready", "later": 1e99, "formats": "raw", "state_time": 9}',
    );
  });

  test("an upload has all its keys from the start", () => {
    const fresh = newImageUpload({ username: "zuul", pythonPath: "auto", shellType: null }, 7);
    expect(JSON.parse(new TextDecoder().decode(encodeImageUpload(fresh)))).toEqual({
      state: "uploading",
      state_time: 7,
      external_id: null,
      external_name: null,
      format: null,
      username: "zuul",
      python_path: "auto",
      shell_type: null,
    });
    const ready = changeImageUpload(fresh, { state: "ready", externalId: "x" }, 8);
    expect(ready).toMatchObject({ state: "ready", stateTime: 8, externalId: "x" });
  });
});
