import { existsSync, readFileSync } from "node:fs";
import { connect as tlsConnect } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fourLetter } from "../four-letter.ts";
import type { ZooKeeperServer } from "../index.ts";
import { kazoo, requireZooKeeper, startEnsemble, startKazoo, startProxy, startZooKeeper } from "../index.ts";

describe.skipIf(requireZooKeeper())("test kit", () => {
  let server: ZooKeeperServer;
  beforeAll(async () => {
    server = await startZooKeeper({ tls: true });
  });
  afterAll(async () => {
    await server.stop();
    expect(existsSync(server.dataDir)).toBe(false);
  });

  test("kazoo reads back what kazoo wrote, after a kill -9 and a restart", async () => {
    const hosts = `${server.host}:${server.plainPort}`;
    await kazoo(`c = client(args[0]); c.create("/kept", b"yes"); c.stop()`, [hosts]);
    await server.restart();
    const read = await kazoo(`c = client(args[0]); say(c.get("/kept")[0].decode()); c.stop()`, [hosts]);
    expect(JSON.parse(read)).toBe("yes");
    expect(Number((await server.mntr()).zk_znode_count)).toBeGreaterThan(0);
  });

  test("the TLS port takes a client with the certificate and refuses one without", async () => {
    const tls = server.tls!;
    const attempt = (withCertificate: boolean) =>
      new Promise<string>((resolve) => {
        const socket = tlsConnect({
          host: server.host,
          port: server.port,
          ca: readFileSync(tls.ca),
          ...(withCertificate ? { cert: readFileSync(tls.cert), key: readFileSync(tls.key) } : {}),
        });
        socket.once("secureConnect", () => {
          expect(socket.authorized).toBe(true);
          socket.write("ruok");
        });
        socket.on("data", (data) => resolve(data.toString()));
        socket.once("error", (error) => resolve(error.message));
        socket.once("close", () => resolve("closed"));
      });
    expect(await attempt(true)).toBe("imok");
    expect(await attempt(false)).not.toBe("imok");
  });

  test("a script that stays is asked and answers", async () => {
    const script = startKazoo(`\nwhile True:\n    say(hear() * 2)\n`);
    expect(await script.ask(21)).toBe(42);
    await script.kill();
    await expect(script.hear()).rejects.toThrow(/ended/);
  });

  test("the proxy cuts after the given byte", async () => {
    const proxy = await startProxy({ host: server.host, port: server.plainPort });
    expect(await fourLetter(proxy.port, "ruok")).toBe("imok");
    const cut = proxy.cutAfter("to-client", 2);
    expect(await fourLetter(proxy.port, "ruok")).toBe("im");
    await cut;
    expect(proxy.bytes["to-client"]).toBe(6);
    proxy.refuse(true);
    expect(await fourLetter(proxy.port, "ruok").catch(() => "")).toBe("");
    await proxy.close();
  });

  test("an ensemble elects another leader when the leader is killed", async () => {
    const ensemble = await startEnsemble(3);
    try {
      const first = await ensemble.leader();
      await first.kill();
      expect((await ensemble.leader()).port).not.toBe(first.port);
    } finally {
      await ensemble.stop();
    }
  });
});
