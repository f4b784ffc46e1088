import { connectorKind, Keys } from "@nodeyard/connect";
import { backoff, messageOf, sleep } from "@nodeyard/runtime";
import { connectZooKeeperTree } from "@nodeyard/tree";
import { z } from "zod";
import { ZuulConnector } from "./connector.ts";
import { readCertificates } from "./edge/certificates.ts";

const [FIRST_PAUSE_MS, MAX_PAUSE_MS] = [1_000, 30_000];
const file = z.string().min(1);

const options = z.strictObject({
  zookeeper: z
    .strictObject({
      servers: z.string().min(1).describe("as `hosts` in zuul.conf: HOST:PORT, with commas between"),
      ca: file.describe("PEM file"),
      cert: file.describe("PEM file"),
      key: file.describe("PEM file"),
      "session-seconds": z
        .int()
        .min(1)
        .max(120)
        .default(15)
        .describe("a lock of a connector that died is free after so long"),
    })
    .describe("the ZooKeeper of Zuul"),
  connection: z
    .string()
    .min(1)
    .describe("a connection of zuul.conf that is in no connection_filter of zuul-launcher"),
  labels: z
    .record(z.string(), Keys.label)
    .default({})
    .describe("labels of the pool by those of Zuul; others have the same name"),
  "keep-seconds": Keys.seconds
    .default(86_400)
    .describe("a lease is made for so long, and extended while Zuul keeps the node"),
  "heartbeat-seconds": Keys.seconds.default(900).describe("leases survive the connector for so long"),
});

/** Behind unmodified zuul-launchers: nodes of one of their connections are leases. */
export const zuul = connectorKind("zuul", options, async (given, parts) => {
  const { servers, "session-seconds": seconds, ...paths } = given.zookeeper;
  // Zuul's own clients do not compare names, so certificates in use may carry none.
  const tls = { ...readCertificates(paths), verifyHost: false };
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
        running = new ZuulConnector(
          tree,
          {
            connection: given.connection,
            labels: given.labels,
            keepSeconds: given["keep-seconds"],
            heartbeatSeconds: given["heartbeat-seconds"],
          },
          parts,
        );
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
