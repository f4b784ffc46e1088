import { describe, expect, test } from "vitest";
import type { SliverConfig } from "../../src/core/plan.ts";
import { namesOf } from "../../src/isolation/lxc/names.ts";
import { Network } from "../../src/isolation/network/edge/network.ts";

describe("the way of slivers to the world", () => {
  test("through an interface that this machine has not is refused by its name, before anything is made", async () => {
    const way = { device: "nowhere0", refuse: [], network: "10.213" };
    const network = new Network(1_000_000_000, way);
    await expect(
      network.connect(namesOf(1, "10.213"), {} as SliverConfig, AbortSignal.timeout(10_000)),
    ).rejects.toMatchObject({
      code: "sliver.command",
      message: expect.stringMatching(/^this machine has no interface nowhere0 .*isolation\.outbound/),
    });
  });
});
