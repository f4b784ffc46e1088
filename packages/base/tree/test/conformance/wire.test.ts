import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { openEmbeddedTree } from "../../src/embedded/index.ts";
import { startTreeServer } from "../../src/server/index.ts";
import { treeConformance } from "../suite/index.ts";
import { zooKeeperTarget } from "../zookeeper/target.ts";

/** The embedded tree behind its own server, seen through the client. */
async function start() {
  const folder = await mkdtemp(join(tmpdir(), "nodeyard-conformance-"));
  const owner = await openEmbeddedTree({ folder, clock: systemClock, random: systemRandom });
  const { core } = owner;
  const server = await startTreeServer({
    core,
    clock: systemClock,
    socket: false,
    tcp: { host: "127.0.0.1", port: 0 },
    limits: { minSessionTimeoutMs: 500 },
  });
  return {
    host: "127.0.0.1",
    port: server.port as number,
    stop: async () => {
      await server.close();
      await owner.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

treeConformance("the embedded tree over the wire", () => zooKeeperTarget(start), ["disconnect", "expire"]);
