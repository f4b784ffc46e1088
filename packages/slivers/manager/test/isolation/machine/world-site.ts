import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { type RealMachine, realMachine } from "./rig.ts";
import { startWorld, type World } from "./world.ts";

/** Another machine, and this one, whose slivers reach it. Both are there while tests run. */
export interface WorldSite {
  readonly world: World;
  readonly real: RealMachine;
}

/** A site for the tests of a `describe`. After each test its slivers are removed, and must have left nothing. */
export function worldSite(
  options: Parameters<typeof realMachine>[0],
  { ipv6 = false }: { readonly ipv6?: boolean } = {},
): WorldSite {
  const site: Partial<{ world: World; real: RealMachine }> = {};
  beforeAll(async () => {
    site.world = await startWorld(ipv6);
    site.real = await realMachine(options);
  });
  afterEach(async () => {
    await site.real!.clear();
    expect(await site.real!.leftovers()).toEqual([]);
  });
  afterAll(async () => {
    try {
      await site.real?.stop();
    } finally {
      site.world?.stop();
    }
  });
  return site as WorldSite;
}
