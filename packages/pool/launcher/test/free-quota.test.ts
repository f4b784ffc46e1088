import type { Resource } from "@nodeyard/driver";
import { VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import type { OpenProvider } from "../src/handles.ts";
import { learnFacts } from "../src/providers/learn-facts.ts";
import type { CloudHandles } from "../src/providers/providers.ts";

const instance = (nodeId: string, installation = "ours"): Resource => ({
  type: "instance",
  id: nodeId,
  tag: { installation, provider: "cloud", pool: "main", nodeId },
  resources: { instances: 1 },
});

const record = (externalId: unknown = null, provider = "cloud") => ({ record: { provider, externalId } });

test("machines whose records come or go while the cloud is listed are not taken for others' use of the quota", async () => {
  const byId = new Map([
    ["1", record()],
    ["2", record()],
  ]);
  const provider = {
    quota: async () => ({ instances: 10 }),
    list: async () => {
      byId.delete("1");
      byId.set("3", record());
      return [instance("1"), instance("2"), instance("3"), instance("4"), instance("5", "theirs")];
    },
  };
  const { local, unsettled } = await learned(provider, byId);
  expect(local.quota).toEqual({ instances: 8 });
  expect(unsettled).toBe(true);
});

test("machines that a launcher of another kind made are counted by their records, and not once more as others' use", async () => {
  const byId = new Map([
    ["1", record("python-1")],
    ["2", record({ server: "python-2" })],
    ["3", record("theirs", "another")],
  ]);
  const untagged = (id: Resource["id"]): Resource => ({
    type: "instance",
    id,
    tag: null,
    resources: { instances: 1 },
  });
  const provider = {
    quota: async () => ({ instances: 10 }),
    list: async () => {
      byId.set("4", record("python-4"));
      byId.delete("1");
      const ids = ["python-1", { server: "python-2" }, "python-4", "theirs", "stranger"];
      return ids.map((id) => untagged(id));
    },
  };
  const { local, unsettled } = await learned(provider, byId);
  expect(local.quota).toEqual({ instances: 8 });
  expect(unsettled).toBe(false);
});

function learned(provider: object, byId: ReadonlyMap<string, unknown>) {
  const open = {
    config: { name: "cloud", pools: [] },
    driver: { capabilities: { launches: true, inventory: false, tags: true } },
    provider,
  } as unknown as OpenProvider;
  const clock = new VirtualClock();
  const handles = {
    clock,
    installation: "ours",
    view: { nodes: { byId }, hasNode: (id: string) => byId.has(id) },
    ages: { now: () => 0 },
  } as unknown as CloudHandles;
  return learnFacts(open, handles, new AbortController().signal);
}
