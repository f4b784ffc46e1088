import {
  type Canary,
  canaryPath,
  changeImageUpload,
  encodeCanary,
  encodeImageUpload,
  newImageUpload,
} from "@nodeyard/model";
import { noBoots } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { ImageTable } from "../../view/src/image-table.ts";
import { chooseUpload } from "../src/nodes/boot-image.ts";

/** Builds in the order of their uploads to `p`. */
function world(builds: readonly string[], canary?: Partial<Canary>, raw?: Uint8Array) {
  const images = new ImageTable();
  const fresh = newImageUpload({ username: null, pythonPath: null, shellType: null }, 0);
  for (const [at, build] of builds.entries()) {
    const data = encodeImageUpload(changeImageUpload(fresh, { state: "ready" }, at));
    images.putUpload({ image: "small", build, provider: "p", upload: "0000000001" }, data);
  }
  const tallies = { candidate: noBoots, stable: noBoots };
  const record = { candidate: null, since: 0, share: 0.1, tallies, rejected: [], last: null, ...canary };
  const entry = { path: canaryPath("small"), data: raw ?? encodeCanary(record), version: 0, created: 0 };
  const own = canary === undefined && raw === undefined ? new Map() : new Map([[entry.path, entry]]);
  return (id: number, attempt = 1) =>
    chooseUpload({ images, own }, "small", "p", { nodeId: String(id).padStart(10, "0"), attempt })?.build;
}

const ids = Array.from({ length: 1_000 }, (_, id) => id);

test("without a trial the newest is launched; without an upload nothing", () => {
  expect(world(["a", "b"])(7)).toBe("b");
  expect(world([])(7)).toBeUndefined();
});

test("a build on trial gets its share of any run of nodes, and no second try", () => {
  const boots = world(["a", "b"], { candidate: "b", share: 0.1 });
  for (const start of [0, 137, 800]) {
    const own = ids.slice(start, start + 100).filter((id) => boots(id) === "b");
    expect(own.length).toBeGreaterThanOrEqual(8);
    expect(own.length).toBeLessThanOrEqual(12);
  }
  expect(ids.filter((id) => boots(id, 2) === "b")).toEqual([]);
});

test("what was rolled back is not launched while there is another", () => {
  expect(ids.filter((id) => world(["a", "b"], { rejected: ["b"] })(id) === "b")).toEqual([]);
  expect(world(["b"], { rejected: ["b"] })(1)).toBe("b");
});

test("a candidate that is not there leaves all to the others; alone it serves all", () => {
  expect(new Set(ids.map(world(["a"], { candidate: "b" })))).toEqual(new Set(["a"]));
  expect(new Set(ids.map(world(["b"], { candidate: "b" })))).toEqual(new Set(["b"]));
});

test("an unreadable record changes nothing", () => {
  expect(world(["a", "b"], undefined, Buffer.from("{}"))(3)).toBe("b");
});
