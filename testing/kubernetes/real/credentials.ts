import { execFileSync } from "node:child_process";
import { chmodSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { afterEach, expect, test } from "vitest";
import { open, RBAC, SPACE, signal, site, useCluster } from "../bench.ts";

useCluster();

const at = (name: string) => join(site.folder, name);
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A kubeconfig whose authority is the server's own file, so that it is renewed with it. */
function kubeconfig(user: object, cluster: object = {}): string {
  const config = JSON.parse(site.configFor(""));
  config.clusters[0].cluster = {
    server: site.server,
    "certificate-authority": at("certs/apiserver.crt"),
    ...cluster,
  };
  config.users[0].user = user;
  writeFileSync(at("credentials.kubeconfig"), JSON.stringify(config));
  return at("credentials.kubeconfig");
}

const usersSince = (from: number) =>
  new Set(
    site
      .audit()
      .slice(from)
      .map(({ user }) => user),
  );

test("a credential plugin is asked again when its token is refused", async () => {
  const count = at("plugin.count");
  const credential = (token: string) =>
    JSON.stringify({
      kind: "ExecCredential",
      apiVersion: "client.authentication.k8s.io/v1",
      status: { token },
    });
  // The first token is one that the server does not know any more.
  writeFileSync(
    at("plugin"),
    `#!/bin/sh\necho x >>${count}\n[ $(wc -l <${count}) = 1 ] && echo '${credential("old")}' || echo '${credential("admin-token")}'\n`,
  );
  chmodSync(at("plugin"), 0o755);
  const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "./plugin" };
  const { provider } = await open("kubernetes", SPACE, { kubeconfig: kubeconfig({ exec }) });
  expect(await provider.list(signal)).not.toEqual([]);
  expect(readFileSync(count, "utf8")).toBe("x\nx\n");
});

test("a token file is read again when its token has ended", async () => {
  const accounts = "/api/v1/namespaces/default/serviceaccounts";
  await site.api("POST", accounts, { metadata: { name: "rotated" } });
  await site.api("POST", `${RBAC}/clusterrolebindings`, {
    metadata: { name: "rotated" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ kind: "ServiceAccount", name: "rotated", namespace: "default" }],
  });
  const secrets = "/api/v1/namespaces/default/secrets";
  /** A token that ends with its secret. */
  const token = async (name: string) => {
    const { metadata } = await site.api<{ metadata: { uid: string } }>("POST", secrets, {
      metadata: { name },
    });
    const boundObjectRef = { apiVersion: "v1", kind: "Secret", name, uid: metadata.uid };
    const path = `${accounts}/rotated/token`;
    const made = await site.api<{ status: { token: string } }>("POST", path, { spec: { boundObjectRef } });
    return made.status.token;
  };
  const first = await token("first");
  writeFileSync(at("token"), first);
  const { provider, create } = await open("kubernetes", SPACE, {
    kubeconfig: kubeconfig({ tokenFile: "token" }),
  });
  await provider.list(signal);
  writeFileSync(at("token"), await token("second"));
  await site.api("DELETE", `${secrets}/first`);
  await site.until("the first token has ended", async () => {
    return (await site.call("GET", "/api/v1/namespaces", first)).status === 401;
  });
  await create();
});

/** Bytes in both directions, until one of them ends. */
function tie(a: Socket, b: Socket): void {
  a.pipe(b).pipe(a);
  for (const [one, other] of [
    [a, b],
    [b, a],
  ] as const)
    one.on("error", () => other.destroy()).on("close", () => other.destroy());
}

async function listening(server: Server): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

const PROXIES: Readonly<Record<string, (seen: string[]) => Server>> = {
  http: (seen) =>
    createHttpServer().on("connect", ({ url = "" }, socket: Socket) => {
      seen.push(url);
      const [host, port] = url.split(":");
      const there = connect(Number(port), host, () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        tie(socket, there);
      });
    }),
  socks5: (seen) =>
    createServer((socket) => {
      socket.once("data", () => {
        socket.write(Buffer.from([5, 0]));
        socket.once("data", (asked) => {
          // Version, "connect", 0, then an IPv4 address or a name with its length, and the port.
          const end = asked[3] === 1 ? 8 : 5 + asked[4]!;
          const host = asked[3] === 1 ? [...asked.subarray(4, 8)].join(".") : asked.toString("utf8", 5, end);
          const port = asked.readUInt16BE(end);
          seen.push(`${host}:${port}`);
          const there = connect(port, host, () => {
            socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
            tie(socket, there);
          });
        });
      });
      socket.on("error", () => socket.destroy());
    }),
};

test.each(Object.keys(PROXIES))("calls and watches go through a proxy (%s)", async (scheme) => {
  const seen: string[] = [];
  const port = await listening(PROXIES[scheme]!(seen));
  const proxied = kubeconfig({ token: "admin-token" }, { "proxy-url": `${scheme}://127.0.0.1:${port}` });
  const { create, remove } = await open("kubernetes", SPACE, { kubeconfig: proxied });
  await create();
  // Ends when the watch has told it.
  await remove();
  expect(new Set(seen)).toEqual(new Set([new URL(site.server).host]));
});

test("a renewed client certificate is used, without a restart", async () => {
  const issue = (name: string) => {
    const files = { key: at(`${name}.key`), csr: at(`${name}.csr`) };
    const openssl = (...words: readonly string[]) => execFileSync("openssl", words, { stdio: "ignore" });
    const subject = `/O=system:masters/CN=${name}`;
    openssl(
      "req",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-subj",
      subject,
      "-keyout",
      files.key,
      "-out",
      files.csr,
    );
    const authority = ["-CA", at("clients.crt"), "-CAkey", at("clients.key"), "-CAcreateserial"];
    openssl("x509", "-req", "-days", "1", "-in", files.csr, ...authority, "-out", at("me.crt"));
    writeFileSync(at("me.key"), readFileSync(files.key));
  };
  issue("first");
  let ahead = 0;
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + ahead };
  const user = { "client-certificate": "me.crt", "client-key": "me.key" };
  const { provider } = await open("kubernetes", SPACE, { kubeconfig: kubeconfig(user), clock });
  const start = site.audit().length;
  await provider.list(signal);
  expect(usersSince(start)).toContain("first");
  issue("second");
  // The files are read again each minute.
  ahead = 61_000;
  const renewed = site.audit().length;
  await provider.list(signal);
  expect(usersSince(renewed)).toContain("second");
});

test("a server that comes back with another authority is trusted, once the file has it", async () => {
  const { provider } = await open("kubernetes", SPACE, { kubeconfig: kubeconfig({ token: "admin-token" }) });
  await provider.list(signal);
  const { ca } = site;
  await site.kill("kube-apiserver");
  for (const file of ["apiserver.crt", "apiserver.key"]) rmSync(at(`certs/${file}`));
  await site.restart("kube-apiserver");
  expect(site.ca).not.toBe(ca);
  await provider.list(signal);
});
