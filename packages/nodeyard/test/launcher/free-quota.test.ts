import type { Resource } from "@nodeyard/driver";
import { VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import type { OpenProvider } from "../../src/launcher/context.ts";
import { learnFacts, type ProviderHandles } from "../../src/launcher/providers/providers.ts";

const instance = (nodeId: string, installation = "ours"): Resource => ({
  type: "instance",
  id: nodeId,
  tag: { installation, provider: "cloud", pool: "main", nodeId },
  resources: { instances: 1 },
});

test("machines whose records come or go while the cloud is listed are not taken for others' use of the quota", async () => {
  const byId = new Map([
    ["1", {}],
    ["2", {}],
  ]);
  const provider = {
    quota: async () => ({ instances: 10 }),
    list: async () => {
      byId.delete("1");
      byId.set("3", {});
      return [instance("1"), instance("2"), instance("3"), instance("4"), instance("5", "theirs")];
    },
  };
  const open = {
    config: { name: "cloud", pools: [] },
    driver: { capabilities: { launches: true, inventory: false, tags: true } },
    provider,
  } as unknown as OpenProvider;
  const clock = new VirtualClock();
  const handles = {
    clock,
    installation: "ours",
    view: { nodes: { byId } },
    ages: { now: () => 0 },
  } as unknown as ProviderHandles;
  const { local, unsettled } = await learnFacts(open, handles, new AbortController().signal);
  expect(local.quota).toEqual({ instances: 8 });
  expect(unsettled).toBe(true);
});
