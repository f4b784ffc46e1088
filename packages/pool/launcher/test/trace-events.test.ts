import { decodeRequest } from "@nodeyard/model";
import type { Span } from "@nodeyard/runtime";
import { memoryJournal } from "@nodeyard/telemetry";
import { expect, test } from "vitest";
import { TracedJournal } from "../src/trace-events.ts";

const ID = "100-0000000001";
const accepted = { provider: "cloud", pool: "main", labels: ["small"], nodes: 1 };

function traced() {
  const record = decodeRequest(
    ID,
    Buffer.from('{"state": "pending", "node_types": ["small"], "created_time": 1}'),
  );
  const requests = { byId: new Map([[ID, { id: ID, record, version: 0 }]]) };
  const spans: Span[] = [];
  let now = 2_000;
  const journal = new TracedJournal(
    memoryJournal(),
    { requests } as never,
    () => (now += 10),
    (span) => spans.push(span),
  );
  return { journal, spans };
}

test("a request that fails is a trace that failed, with the node and the step where it did", () => {
  const { journal, spans } = traced();
  journal.write({ event: "request.accepted", request: ID, facts: accepted });
  journal.write({ event: "node.created", node: "0000000001", facts: { request: ID } });
  const step = { of: "launch", attempt: 1, step: "boot", began: 2_015, ms: 4, error: "no room" };
  journal.write({ event: "node.step", node: "0000000001", facts: step });
  journal.write({ event: "node.failed", node: "0000000001", facts: { state: "failed", why: "no room" } });
  journal.write({ event: "request.declined", request: ID, facts: { reason: "no room", state: "failed" } });
  expect(spans.map(({ name, start, end, error }) => [name, start, end, error])).toEqual([
    ["wait for a pool", 1_000, 2_010, undefined],
    ["launch: boot", 2_015, 2_019, "no room"],
    ["launch a node", 2_020, 2_030, "no room"],
    ["request", 1_000, 2_040, "no room"],
  ]);
  expect(new Set(spans.map(({ trace }) => trace)).size).toBe(1);
});

test("another launcher continues the same trace; work without a request makes none", () => {
  const [one, other] = [traced(), traced()];
  for (const { journal } of [one, other])
    journal.write({ event: "request.accepted", request: ID, facts: accepted });
  one.journal.write({
    event: "request.declined",
    request: ID,
    facts: { reason: "full", state: "requested" },
  });
  other.journal.write({ event: "request.fulfilled", request: ID, facts: {} });
  other.journal.write({ event: "node.step", node: "0000000009", facts: { of: "delete", step: "delete" } });
  other.journal.write({ event: "node.ready", node: "0000000009", facts: {} });
  expect(one.spans.map(({ name }) => name)).toEqual(["wait for a pool"]);
  expect(other.spans.map(({ name }) => name)).toEqual(["wait for a pool", "request"]);
  expect(other.spans[0]!.trace).toBe(one.spans[0]!.trace);
  expect(other.spans[1]!.id).toBe(one.spans[0]!.parent);
});
