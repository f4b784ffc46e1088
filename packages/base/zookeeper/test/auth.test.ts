import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  requireZooKeeper,
  startProxy,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../testing/zookeeper/index.ts";
import { AuthFailed, connect, NoAuth, type ZooKeeper } from "../src/index.ts";
import { answerChallenge } from "../src/session/digest-md5.ts";
import { client, closeClients, errorOf, freshPath, until } from "./support.ts";

const CREATOR_ALL = [{ perms: 31, scheme: "auth", id: "" }];

test("DIGEST-MD5 answers a challenge as an independent calculation does", () => {
  const challenge = 'realm="zk-sasl-md5",nonce="OA6MG9tEQGm2hh",charset=utf-8,algorithm=md5-sess,qop="auth"';
  const answer = answerChallenge(challenge, { username: "chris", password: "secret" }, "OA6MHXh6VqTrRk");
  expect(answer.token).toContain('username="chris",realm="zk-sasl-md5",nonce="OA6MG9tEQGm2hh",nc=00000001,');
  expect(answer.token).toContain("response=08659cbbde96b164e9ebf4020a889fa8,");
  expect(answer.serverProof).toBe("rspauth=6141d16333713b2592fc5680f8d67c3e");
});

test("DIGEST-MD5 refuses challenges that are malformed or want more than authentication", () => {
  const nobody = { username: "", password: "" };
  for (const challenge of ['nonce="x",qop="auth-conf"', "nonsense", 'realm="x"', 'nonce="open']) {
    expect(() => answerChallenge(challenge, nobody, "c")).toThrow(AuthFailed);
  }
});

describe.skipIf(requireZooKeeper())("credentials", () => {
  let server: ZooKeeperServer;
  let folder: string;
  let zk: ZooKeeper;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "nodeyard-jaas-"));
    const jaas = join(folder, "jaas.conf");
    const login = "org.apache.zookeeper.server.auth.DigestLoginModule required";
    await writeFile(jaas, `Server { ${login} user_zuul="sec\\"ret" user_bob="builder"; };\n`);
    server = await startZooKeeper({
      jvm: [
        `-Djava.security.auth.login.config=${jaas}`,
        "-Dzookeeper.authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
      ],
    });
    zk = await client(server);
  });
  afterAll(async () => {
    await closeClients();
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test("addauth digest opens what it locked, on every connection", async () => {
    const proxy = await startProxy(server);
    const path = await freshPath(zk);
    const auth = { scheme: "digest", auth: "user:pass" };
    const owner = await client(proxy, { auth: [auth] });
    await owner.create(`${path}/mine`, Buffer.from("1"), { acl: CREATOR_ALL });
    expect(await errorOf(zk.get(`${path}/mine`))).toBeInstanceOf(NoAuth);
    proxy.cut();
    await until("reconnected", () => owner.counters.connections === 2);
    expect((await owner.get(`${path}/mine`)).data.toString()).toBe("1");
    const later = await client(server);
    await later.addAuth(auth);
    expect((await later.get(`${path}/mine`)).data.toString()).toBe("1");
    await owner.close();
    await proxy.close();
  });

  test("a scheme that the server does not know closes the client with AuthFailed", async () => {
    const unknown = { scheme: "nonsense", auth: "x" };
    const doomed = await client(server);
    expect(await errorOf(doomed.addAuth(unknown))).toBeInstanceOf(AuthFailed);
    await until("closed", () => doomed.session.state === "closed");
  });

  test("SASL DIGEST-MD5 makes the user known before the first operation", async () => {
    const path = await freshPath(zk);
    const zuul = await client(server, { sasl: { username: "zuul", password: 'sec"ret' } });
    expect(await zuul.whoAmI()).toContainEqual({ authScheme: "sasl", user: "zuul" });
    await zuul.create(`${path}/mine`, undefined, { acl: [{ perms: 31, scheme: "sasl", id: "zuul" }] });
    expect(await errorOf(zk.get(`${path}/mine`))).toBeInstanceOf(NoAuth);
  });

  test("a wrong password ends in AuthFailed, at once and for good", async () => {
    const options = { sasl: { username: "bob", password: "wrong" }, deadlineMs: 15_000 };
    expect(await errorOf(connect(`${server.host}:${server.port}`, options))).toBeInstanceOf(AuthFailed);
  });
});
