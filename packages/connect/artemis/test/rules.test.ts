import { expect, test } from "vitest";
import { meets } from "../src/constraints.ts";
import { optionsSchema, ruleFor } from "../src/options.ts";

/** Of a rule; the constraints are those of tmt's specification of `hardware`. */
const promised = {
  arch: "x86_64",
  memory: "8 GB",
  cpu: { processors: 4, "model-name": "Haswell", flag: ["avx", "avx2"] },
  disk: [{ size: "40 GB" }, { size: "500 GiB" }],
  virtualization: { "is-virtualized": true },
};

test.each([
  [{ memory: ">= 4 GB" }, true],
  [{ memory: "8GB" }, true],
  [{ memory: "> 8 GB" }, false],
  // Numbers without a unit are MiB of memory: 8 GB are 7629.4 MiB.
  [{ memory: 7_629 }, false],
  [{ memory: "> 7629" }, true],
  [{ memory: "< 7629" }, false],
  [{ memory: "<= 8000 MB" }, true],
  [{ memory: ">= 8 GiB" }, false],
  [{ cpu: { processors: ">= 2" } }, true],
  [{ cpu: { processors: ">= 10" } }, false],
  [{ cpu: { processors: "!= 4" } }, false],
  [{ cpu: { "model-name": "~ Has.*" } }, true],
  [{ cpu: { "model-name": "=~ well" } }, false],
  [{ cpu: { "model-name": "!~ Has" } }, false],
  [{ cpu: { "model-name": "~ (" } }, false],
  [{ cpu: { flag: ["avx", "= avx2"] } }, true],
  [{ cpu: { flag: ["avx512"] } }, false],
  [{ cpu: { flag: ["!= avx512"] } }, true],
  [{ cpu: { flag: ["!= avx"] } }, false],
  [{ disk: [{ size: ">= 20 GB" }, { size: ">= 500 GB" }] }, true],
  [{ disk: [{ size: ">= 100 GB" }] }, false],
  [{ disk: [{}, {}, { size: "> 0 B" }] }, false],
  [{ virtualization: { "is-virtualized": true } }, true],
  [{ virtualization: { "is-virtualized": "!= true" } }, false],
  // A rule that does not name it does not promise it.
  [{ tpm: { version: "2.0" } }, false],
  [{ cpu: "Haswell" }, false],
  [{ and: [{ memory: ">= 4 GB" }, { or: [{ arch: "aarch64" }, { cpu: { processors: 4 } }] }] }, true],
  [{ or: [{ arch: "aarch64" }, { memory: "> 1 TB" }] }, false],
  [{ and: [{ memory: ">= 4 GB" }], cpu: { processors: 8 } }, false],
  [{}, true],
])("%j: %s", (wanted, outcome) => {
  expect(meets(wanted, promised)).toBe(outcome);
});

test("the first rule that fits decides, by architecture, image, key, pool and hardware", () => {
  const { rules } = optionsSchema.parse({
    listen: "127.0.0.1:0",
    rules: [
      { label: "lab", pool: "lab", compose: "Fedora-4?" },
      { label: "big", arch: "x86_64", compose: "Fedora-*", hardware: { memory: "64 GB" } },
      { label: "arm", arch: "aarch64", hardware: { memory: "4 GB" } },
      { label: "mine", keyname: "mine" },
      { label: "small", arch: "x86_64", compose: "Fedora-*.?", hardware: { memory: "4 GB" } },
    ],
  });
  const label = (more: object) => {
    const wanted = { arch: "x86_64", compose: "Fedora-42", keyname: "master-key", constraints: null };
    return ruleFor(rules, { ...wanted, ...more })?.label;
  };
  expect(label({})).toBe("big");
  expect(label({ constraints: { memory: "> 64 GB" } })).toBeUndefined();
  expect(label({ arch: "aarch64", constraints: { memory: ">= 2 GB", arch: "aarch64" } })).toBe("arm");
  expect(label({ arch: "s390x" })).toBeUndefined();
  expect(label({ arch: "s390x", keyname: "mine" })).toBe("mine");
  // Only * stands for other characters.
  expect(label({ compose: "Fedora-4?", pool: "lab" })).toBe("lab");
  expect(label({ compose: "Fedora-42", pool: "lab" })).toBeUndefined();
  expect(label({ compose: "CentOS-10" })).toBeUndefined();
});
