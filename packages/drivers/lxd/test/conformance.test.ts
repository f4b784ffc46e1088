import { driverConformance } from "@nodeyard/driver-testkit";
import { afterAll, describe, expect, test } from "vitest";
import { LxdServer, lxdRig, requireLxd } from "../../../../testing/lxd/index.ts";
import { lxdDriver } from "../src/index.ts";

const skip = requireLxd() !== undefined;
/** Two servers for all tests, each of which has a project of its own. */
const servers: Promise<LxdServer>[] = [];
const server = (index: number) => {
  servers[index] ??= LxdServer.start();
  return servers[index];
};
afterAll(async () => {
  for (const one of servers) await (await one).stop();
});

describe.skipIf(skip)("lxd", () => {
  const rig = async () => lxdRig(await server(0), {}, () => server(1));
  driverConformance("lxd", lxdDriver, rig, { describe, test, expect });
});
