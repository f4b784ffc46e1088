import { describe, expect, test } from "vitest";
import { decodeImageBuild, decodeImageUpload, paths } from "../src/index.ts";

const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

describe("image records (spec zookeeper.md 2.4 and 2.5)", () => {
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
