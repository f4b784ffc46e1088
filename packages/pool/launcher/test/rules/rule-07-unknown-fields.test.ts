import { paths } from "@nodeyard/model";
import { createState, reduce } from "@nodeyard/scheduler";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./world.ts";

const ODD =
  '"big": 12345678901234567890, "nan": NaN, "inf": -Infinity, "__proto__": {"a": 1}, "s": "\\ud800"';
const LARGE = `"requestor_data": "${"x".repeat(1_000_000)}"`;

test("rule 7: unknown fields survive the whole life of a request and of a node", async () => {
  const world = new World();
  await world.start("a", launcherConfig([fakeProvider()]));
  const id = await world.ask(
    `{"state": "requested", "node_types": ["small"], "requestor": "t", "event_id": "e", ${ODD}, ${LARGE}}`,
  );
  const text = () => world.text(paths.request(id)) ?? "";
  await world.until("fulfilled", () => text().includes('"fulfilled"'));
  for (const part of [...ODD.split(", "), LARGE])
    expect(text().replaceAll(": ", ":")).toContain(part.replaceAll(": ", ":"));
});

test("rule 1: a sweep that comes while the picture has a gap puts nothing back, and is made up for", () => {
  const state = createState();
  const record = { state: "pending", nodeTypes: ["small"], declinedBy: [], nodes: [] } as never;
  const after = { id: "100-1", record, version: 0 };
  reduce(state, [{ type: "request", id: "100-1", after }], 1);
  expect(reduce(state, [{ type: "sweep" }], 2).actions).toEqual([]);
  expect(reduce(state, [{ type: "complete", complete: true }], 3).actions).toEqual([
    { type: "reset", request: "100-1" },
  ]);
});
