import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../testing/zookeeper/index.ts";
import type { TlsOptions, ZooKeeper } from "../src/index.ts";
import { connect } from "../src/index.ts";
import { client, closeClients, errorOf, freshPath, until } from "./support.ts";

describe.skipIf(requireZooKeeper())("over mutual TLS", () => {
  let server: ZooKeeperServer;
  let tls: { ca: string; cert: string; key: string };
  let zk: ZooKeeper;

  beforeAll(async () => {
    server = await startZooKeeper({ tls: true });
    const { ca, cert, key } = server.tls!;
    const [caText, certText, keyText] = await Promise.all(
      [ca, cert, key].map((file) => readFile(file, "utf8")),
    );
    tls = { ca: caText!, cert: certText!, key: keyText! };
    zk = await client(server, { tls });
  });
  afterAll(async () => {
    await closeClients();
    await server?.stop();
  });

  /** Resolves when an attempt fails for this reason; one that a slow server does not answer in time has another, and is made again. */
  async function refused(options: TlsOptions, why: RegExp): Promise<void> {
    await until(`refused: ${why}`, async () => {
      const attempt = connect(`${server.host}:${server.port}`, { tls: options, deadlineMs: 500 });
      return why.test(String(((await errorOf(attempt)) as Error).cause));
    });
  }

  test("everything works: operations, large data, watches, the session's end", async () => {
    const path = await freshPath(zk);
    const events: string[] = [];
    await zk.addWatch(path, "persistent", (event) => events.push(event.type));
    const data = Buffer.alloc(1_000_000, "tls ");
    await Promise.all(Array.from({ length: 8 }, (_, i) => zk.create(`${path}/${i}`, data)));
    const read = await Promise.all(Array.from({ length: 8 }, (_, i) => zk.get(`${path}/${i}`)));
    for (const one of read) expect(one.data.equals(data)).toBe(true);
    expect(events.length).toBe(8);
    const many = Array.from({ length: 2_000 }, (_, i) => zk.create(`${path}/n${i}`, Buffer.alloc(600)));
    await Promise.all(many);
    const brief = await client(server, { tls });
    await brief.create(`${path}/e`, undefined, { ephemeral: true });
    await brief.close();
    expect(await zk.exists(`${path}/e`)).toBeUndefined();
  });

  test("a server of an unknown authority is refused", async () => {
    await refused({ cert: tls.cert, key: tls.key }, /certificate|self-signed/i);
  });

  test("a client without a certificate is refused by the server", async () => {
    await refused({ ca: tls.ca }, /^(?!undefined$)/);
  });

  test("the certificate must name the host, unless that is switched off", async () => {
    await refused({ ...tls, serverName: "elsewhere.example.org" }, /elsewhere\.example\.org/);
    const lenient = await client(server, {
      tls: { ...tls, serverName: "elsewhere.example.org", verifyHost: false },
    });
    expect(await lenient.exists("/")).toBeDefined();
  });
});
