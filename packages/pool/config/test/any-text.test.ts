import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { loadConfig, validateConfig } from "../src/index.ts";
import { drivers } from "./support.ts";

const keys = (
  "name driver labels providers pools nodes diskimages cloud-images parent max-servers zookeeper-servers zookeeper-tls " +
  "zookeeper-timeout webapp host port chroot fake latency tenant-resource-limits tenant-name host-key node-attributes " +
  "priority cloud diskimage capacity meta constructor __proto__"
).split(" ");
const scalar = fc.constantFrom(
  1e20,
  ...["a", "fake", "static", "fake-x", "1.5", "", "/x", "a b"],
  ...[1, -1, 1.5, true, null],
);
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof({ depthSize: "medium", withCrossShrink: true }, scalar, tie("map"), tie("list")),
  map: fc.dictionary(fc.constantFrom(...keys), tie("tree"), { maxKeys: 6 }),
  list: fc.array(tie("tree"), { maxLength: 4 }),
}));
const mapping = fc.dictionary(fc.constantFrom(...keys), tree, { maxKeys: 8 });
const provider = fc.record({
  name: fc.constant("s"),
  driver: fc.oneof({ weight: 9, arbitrary: fc.constantFrom("static", "fake", "azure", "kubernetes") }, tree),
  pools: fc.array(mapping, { maxLength: 2 }),
  diskimages: fc.constantFrom([], [{ name: "i", meta: { a: {} } }], null),
  "cloud-images": tree,
  fake: tree,
  "max-concurrency": tree,
});
const text = fc.oneof(
  fc.string({ maxLength: 80 }),
  fc.string({
    unit: fc.constantFrom(
      "a",
      ":",
      " ",
      "-",
      "\n",
      "[",
      "]",
      "{",
      "}",
      "&",
      "*",
      "!",
      "%",
      "'",
      "<",
      "1",
      "#",
      "|",
    ),
  }),
  mapping.map((value) => JSON.stringify(value)),
  fc
    .record({
      providers: fc.array(provider, { maxLength: 2 }),
      labels: fc.constant([{ name: "a" }]),
      diskimages: fc.constant([{ name: "i" }]),
    })
    .map((value) => JSON.stringify(value)),
);

describe("any text", () => {
  it("is loaded or explained; never throws, and every finding has a place", () => {
    fc.assert(
      fc.property(text, text, (main, secure) => {
        const input = {
          text: main,
          path: "n.yaml",
          secureText: secure,
          securePath: "s.yaml",
          env: {},
          drivers,
        };
        const { config, findings } = loadConfig(input);
        const verdict = validateConfig(input);
        for (const finding of [...findings, ...verdict.findings]) {
          expect(finding.line).toBeGreaterThanOrEqual(1);
          expect(finding.column).toBeGreaterThanOrEqual(1);
          expect(["n.yaml", "s.yaml"]).toContain(finding.file);
          expect(finding.message).not.toMatch(/\n|undefined|\[object/);
        }
        expect(config === undefined).toBe(findings.some(({ severity }) => severity === "error"));
        expect(verdict.exitCode).toBe(verdict.findings.some(({ severity }) => severity === "error") ? 1 : 0);
      }),
      { numRuns: 1500 },
    );
  });
});
