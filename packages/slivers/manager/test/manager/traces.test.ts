import type { Span } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { incoming } from "../core/arbitrary.ts";
import { Rig } from "./rig.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const LAUNCH = "b7ad6b7169203331";
const tags = { node: "0000000001", traceparent: `00-${TRACE}-${LAUNCH}-01` };

function traced(): { rig: Rig; spans: Span[] } {
  const spans: Span[] = [];
  return { rig: new Rig({ trace: (span) => spans.push(span) }), spans };
}

test("a sliver of a traced launch continues its trace, with the steps that make it and no later ones", async () => {
  const { rig, spans } = traced();
  await rig.start();
  await rig.deliver(1, [incoming("traced", 1, { tags })]);
  expect(spans.map(({ trace, parent, name }) => [trace, parent, name])).toEqual([
    [TRACE, LAUNCH, "sliver: create"],
    [TRACE, LAUNCH, "sliver: configure"],
    [TRACE, LAUNCH, "sliver: start"],
  ]);
  expect(new Set(spans.map(({ id }) => id)).size).toBe(3);
  expect(spans[0]!.attributes).toMatchObject({ sliver: "traced", sliver_host: "node-1" });
  // Other amounts, another start with its machine, and its end are no part of the launch.
  await rig.deliver(2, [incoming("traced", 2, { tags, keys: ["ssh-ed25519 AAAA"] })]);
  for (const one of rig.machine.made.values()) one.phase = "stopped";
  await rig.pass(60_000);
  expect(rig.found).toEqual(["traced:running"]);
  await rig.deliver(3, []);
  expect(rig.found).toEqual([]);
  expect(spans).toHaveLength(3);
});

test("a step that fails is a span that failed, and so is each try after it; what a program says is cut", async () => {
  const { rig, spans } = traced();
  let fails = true;
  rig.machine.disturb = (step) => {
    if (step === "start" && fails) throw new Error("x".repeat(5_000));
  };
  await rig.start();
  await rig.deliver(1, [incoming("traced", 1, { tags })]);
  fails = false;
  await rig.pass(60_000);
  expect(rig.found).toEqual(["traced:running"]);
  const starts = spans.filter(({ name }) => name === "sliver: start");
  expect(starts.map(({ error }) => error?.length)).toEqual([500, undefined]);
});

test.each([
  ["names no trace", undefined],
  ["says that nobody records it", `00-${TRACE}-${LAUNCH}-00`],
  ["names a trace without an id", `00-${"0".repeat(32)}-${LAUNCH}-01`],
  ["is no traceparent", `00-${TRACE}-${LAUNCH}-01; <script>`],
])("a document that %s makes no span", async (_, traceparent) => {
  const { rig, spans } = traced();
  await rig.start();
  await rig.deliver(1, [
    incoming("plain", 1, traceparent === undefined ? {} : { tags: { traceparent } }),
    // Tags of PLC are whatever its users wrote there.
    incoming("plc", 1, { attributes: { traceparent: tags.traceparent } }),
  ]);
  expect(rig.found).toEqual(["plain:running", "plc:running"]);
  expect(spans).toEqual([]);
});
