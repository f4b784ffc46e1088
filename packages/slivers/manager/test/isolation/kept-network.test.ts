import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { keepNetwork, keptNetwork } from "../../src/isolation/lxc/edge/machine.ts";

describe("the network that slivers have their addresses of", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-network-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test("stays while there are slivers, and may be another when there are none", async () => {
    expect(await keptNetwork(folder)).toBeUndefined();
    // Slivers of an earlier version have left no note.
    await keepNetwork(folder, "10.213", 2);
    await keepNetwork(folder, "10.213", 2);
    await expect(keepNetwork(folder, "10.99", 2)).rejects.toMatchObject({
      code: "sliver.machine",
      message:
        "isolation.network is 10.99, and the existing slivers (2) have addresses of 10.213: write 10.213 again; it can change once they have ended (sliverd --dismantle ends all of them)",
    });
    expect(await keptNetwork(folder)).toBe("10.213");
    await keepNetwork(folder, "10.99", 0);
    expect(await keptNetwork(folder)).toBe("10.99");
  });
});
