import { connectorKind, readKey } from "@nodeyard/connect";
import { backoff, messageOf, sleep } from "@nodeyard/runtime";
import { connectZooKeeperTree } from "@nodeyard/tree";
import { ZuulConnector } from "./connector.ts";
import { options } from "./options.ts";

const [FIRST_PAUSE_MS, MAX_PAUSE_MS] = [1_000, 30_000];
/** Behind unmodified zuul-launchers: nodes of one of their connections are leases. */
export const zuul = connectorKind("zuul", options, async (given, parts) => {
  const { servers, "session-seconds": seconds, ca, cert, key } = given.zookeeper;
  // Zuul's own clients do not compare names, so certificates in use may carry none.
  const tls = { ca: readKey(ca), cert: readKey(cert), key: readKey(key), verifyHost: false };
  const stop = new AbortController();
  const { clock, random, log } = parts;
  let running: ZuulConnector | undefined;
  const connect = async () => {
    for (let attempt = 0; !stop.signal.aborted; attempt++) {
      try {
        const tree = await connectZooKeeperTree({
          servers,
          tls,
          sessionTimeoutMs: seconds * 1_000,
          clock,
          random,
        });
        if (stop.signal.aborted) return await tree.close();
        running = new ZuulConnector(tree, given, parts);
        log.info({ connection: given.connection }, "the nodes of Zuul's connection are served");
        return;
      } catch (error) {
        log.warn({ servers, why: messageOf(error) }, "Zuul's ZooKeeper does not answer");
        await sleep(clock, backoff(random, attempt, FIRST_PAUSE_MS, MAX_PAUSE_MS), stop.signal).catch(
          () => {},
        );
      }
    }
  };
  const work = connect();
  return {
    async close() {
      stop.abort(new Error("the connector is stopped"));
      await work;
      await running?.close();
    },
  };
});
