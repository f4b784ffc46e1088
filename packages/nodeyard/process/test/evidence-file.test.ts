import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VirtualClock } from "@nodeyard/runtime";
import { expect, onTestFinished, test } from "vitest";
import { openEvidence } from "../src/edge/evidence-file.ts";

const tag = (nodeId: string) => ({ installation: "i", provider: "p", pool: "main", nodeId });

function place() {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-evidence-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const said: string[] = [];
  const say = (_: object, text: string) => void said.push(text);
  const log = { debug: say, info: say, warn: say, error: say } as unknown as Parameters<
    typeof openEvidence
  >[1]["log"];
  const clock = new VirtualClock();
  return {
    said,
    clock,
    file: join(folder, "evidence.sqlite"),
    open: (file: string) => openEvidence(file, { clock, log }),
  };
}

test("evidence outlives the process, the last tag counts, and after a month it is forgotten", async () => {
  const { clock, file, open } = place();
  const first = open(file);
  first.record("instance", "s", tag("0000000001"));
  first.record("instance", "s", tag("0000000002"));
  first.close();
  const second = open(file);
  expect(second.tagOf("instance", "s")).toEqual(tag("0000000002"));
  expect(second.tagOf("volume", "s")).toBeNull();
  second.close();
  await clock.advance(31 * 24 * 3_600_000);
  const third = open(file);
  expect(third.tagOf("instance", "s")).toBeNull();
  third.close();
});

test("a process that is never restarted forgets, too", async () => {
  const { clock, file, open } = place();
  const evidence = open(file);
  evidence.record("instance", "s", tag("0000000001"));
  await clock.advance(31 * 24 * 3_600_000);
  for (let server = 0; server < 1_000; server++) evidence.record("instance", `${server}`, tag("0000000002"));
  expect(evidence.tagOf("instance", "s")).toBeNull();
  expect(evidence.tagOf("instance", "0")).toEqual(tag("0000000002"));
  evidence.close();
});

test("without a valid database only the evidence of this process is kept, with a warning", () => {
  const { said, file, open } = place();
  writeFileSync(file, "this is no database, and longer than its header would be".repeat(50));
  const evidence = open(file);
  evidence.record("instance", "s", tag("0000000001"));
  expect(evidence.tagOf("instance", "s")).toEqual(tag("0000000001"));
  expect(said).toHaveLength(1);
});
