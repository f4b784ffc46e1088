import { expect, test } from "vitest";
import { memoryEvidence } from "../src/index.ts";

const tag = (nodeId: string) => ({ installation: "i", provider: "p", pool: "main", nodeId });

test("evidence is by type and id, the last tag counts, and the oldest goes when there is too much", () => {
  const evidence = memoryEvidence(2);
  evidence.record("instance", "a", tag("0000000001"));
  evidence.record("volume", "a", tag("0000000002"));
  evidence.record("instance", "a", tag("0000000003"));
  expect(evidence.tagOf("instance", "a")).toEqual(tag("0000000003"));
  evidence.record("instance", "b", tag("0000000004"));
  expect(evidence.tagOf("volume", "a")).toBeNull();
  expect(evidence.tagOf("instance", "a")).toEqual(tag("0000000003"));
});
