import { setTimeout as sleep } from "node:timers/promises";
import { removeFolder, temporaryFolder } from "../../testing/zookeeper/children.ts";
import { startZooKeeper } from "../../testing/zookeeper/index.ts";
import { startConnector } from "../../testing/zuul/connector.ts";
import { type PlayedNode, ZuulPlayer } from "../../testing/zuul/player.ts";
import { makeYard } from "../../testing/zuul/yard.ts";

const POOL = `
labels: [{name: small, min-ready: 1}]
providers:
  - name: cloud
    driver: fake
    cloud: memory
    fake: {}
    cloud-images: [{name: debian, username: zuul}]
    pools:
      - {name: main, max-servers: 2, labels: [{name: small, cloud-image: debian, min-ram: 1024}]}
`;
const LIMIT_MS = 60_000;

/**
 * Nodes of Zuul, made, used and given back one after the other by Zuul's own classes. Resolves with how long each took to be ready on a node of
 * the pool that was, milliseconds by the clock of Zuul's ZooKeeper.
 */
export async function zuulNodes(count: number): Promise<readonly number[]> {
  const folder = await temporaryFolder("nodeyard-bench-");
  const [yard, zookeeper] = await Promise.all([makeYard("embedded"), startZooKeeper({ tls: true })]);
  const tls = zookeeper.tls!;
  const servers = `localhost:${zookeeper.port}`;
  const player = new ZuulPlayer(servers, tls);
  let connector: Awaited<ReturnType<typeof startConnector>> | undefined;
  try {
    await Promise.all([yard.start(POOL), player.ready()]);
    connector = await startConnector({
      folder,
      pool: yard.socket,
      servers,
      tls,
      more: "    labels: {zl-small: small}\n",
    });
    const taken: number[] = [];
    // The first two are for compilers and caches.
    for (let made = 0; made < count + 2; made++) {
      const { request, node } = await player.call<{ request: string; node: string }>("request", "zl-small");
      const ready = await until(player, node, (found) => found?.state === "ready");
      if (made >= 2) taken.push(ready!.written - ready!.made);
      await player.call("accept", request);
      await player.call("give_back", request);
      await until(player, node, (found) => found === null);
    }
    return taken;
  } finally {
    await connector?.signal("SIGKILL");
    player.kill();
    await Promise.all([zookeeper.stop(), yard.close()]);
    await removeFolder(folder);
  }
}

async function until(player: ZuulPlayer, node: string, isSo: (found: PlayedNode | null) => boolean) {
  for (const limit = performance.now() + LIMIT_MS; ; await sleep(50)) {
    const found = await player.node(node);
    if (isSo(found)) return found;
    if (performance.now() > limit) throw new Error(`node ${node} of Zuul is ${found?.state ?? "gone"}`);
  }
}
