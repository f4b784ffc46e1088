import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { requireTools } from "../../../../testing/skipped.ts";
import { type Certificates, makeCertificates } from "../../../../testing/zookeeper/index.ts";
import { startApi } from "../../../faces/api/test/rig.ts";
import { until } from "../../../pool/launcher/test/rig.ts";
import { fakeConfig, type Running, Site } from "../../cli/test/nodeyard.ts";

const missing = requireTools("tests of the web interface by TLS", "openssl");

const folder = mkdtempSync(join(tmpdir(), "nodeyard-tls-"));
const at = (name: string) => join(folder, name);
let first: Certificates;
let second: Certificates;
let ca: readonly string[];
let site: Site;
let up: Running;
let url: URL;

beforeAll(async () => {
  if (missing) return;
  for (const name of ["first", "second"]) mkdirSync(at(name));
  [first, second] = [await makeCertificates(at("first")), await makeCertificates(at("second"))];
  ca = [first, second].map((one) => readFileSync(one.ca, "utf8"));
  use(first);
  const tls = `tls: {cert: ${at("cert.pem")}, key: ${at("key.pem")}}`;
  site = new Site(fakeConfig({ extra: `webapp: {listen_address: 127.0.0.1, port: 0, ${tls}}` }));
  up = await site.up();
  url = new URL(/"address":"(https:\/\/[^"]+)"/.exec(up.err)![1]!);
});
afterAll(async () => {
  await site?.close();
  rmSync(folder, { recursive: true, force: true });
});

function use({ cert, key }: Pick<Certificates, "cert" | "key">): void {
  copyFileSync(cert, at("cert.pem"));
  copyFileSync(key, at("key.pem"));
}

interface Options {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

const send = (path: string, options: Options = {}, to = url) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    const where = { host: to.hostname, port: to.port, path, ca: [...ca], agent: false };
    request({ ...where, ...options }, resolve)
      .once("error", reject)
      .end();
  });
const textOf = async (path: string) => (await (await send(path)).toArray()).map(String).join("");

/** The serial number of the certificate that a new connection is shown. */
async function shown(options: ConnectionOptions = {}): Promise<string> {
  const socket = await new Promise<TLSSocket>((resolve, reject) => {
    const made: TLSSocket = connect(
      { host: url.hostname, port: Number(url.port), ca: [...ca], ...options },
      () => resolve(made),
    ).once("error", reject);
  });
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

test.skipIf(missing)(
  "the certificate is read again at SIGHUP: streams go on, and what cannot be used is not taken",
  async () => {
    const { token } = await site.json<{ token: string }>("token", "create", "page", "--role", "viewer");
    const headers = { authorization: `Bearer ${token}` };
    const stream = await send("/v1/events", { headers });
    let reported = "";
    let ended = false;
    stream.setEncoding("utf8").on("data", (text: string) => {
      reported += text;
    });
    stream.once("close", () => {
      ended = true;
    });
    await until("all is told", () => reported.includes("event: synced"));
    const login = await send("/v1/session", { method: "POST", headers });
    expect(login.headers["set-cookie"]![0]).toMatch(/^__Host-nodeyard_session=.*; Secure$/);
    login.resume();
    const before = await shown();

    // A key of another certificate.
    use({ cert: second.cert, key: first.key });
    up.child.kill("SIGHUP");
    await up.printed("the former certificate stays in use");
    expect(up.err).toMatch(/cannot use the certificate .*cert\.pem.*correct webapp\.tls/);
    expect(await shown()).toBe(before);
    expect(await textOf("/metrics")).toMatch(/config_last_reload_successful 0/);

    use(second);
    await until("the new one is shown", async () => {
      // A second one within a moment counts as an echo of the first.
      up.child.kill("SIGHUP");
      return (await shown()) !== before;
    });
    expect(await textOf("/metrics")).toMatch(/config_last_reload_successful 1/);
    expect(ended).toBe(false);
    const length = reported.length;
    await site.run("token", "create", "other", "--role", "viewer");
    await site.run("request", "small");
    await until("the stream goes on", () => reported.length > length);
    stream.destroy();
  },
);

test.skipIf(missing)("versions before 1.2 are refused", async () => {
  const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
  await expect(shown(old)).rejects.toMatchObject({ code: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION" });
  await expect(shown({ maxVersion: "TLSv1.2" })).resolves.toMatch(/./);
});

test.skipIf(missing)(
  "with an authority for clients, a client without its certificate gets no answer",
  async () => {
    await using api = await startApi();
    const to = new URL(await api.listen({ host: "127.0.0.1", port: 0, tls: { ...first, ca: first.ca } }));
    const withCertificate = ({ cert, key }: Certificates) => ({
      cert: readFileSync(cert),
      key: readFileSync(key),
    });
    expect((await send("/live", withCertificate(first), to)).statusCode).toBe(200);
    await expect(send("/live", {}, to)).rejects.toThrow();
    await expect(send("/live", withCertificate(second), to)).rejects.toThrow();
  },
);

test.skipIf(missing)("a certificate that cannot be used is refused at the start", async () => {
  await using api = await startApi();
  writeFileSync(at("begun.pem"), readFileSync(first.cert, "utf8").slice(0, 100));
  for (const tls of [
    { cert: first.cert, key: second.key, ca: null },
    { cert: at("begun.pem"), key: first.key, ca: null },
    { cert: at("nowhere.pem"), key: first.key, ca: null },
  ])
    await expect(api.listen({ host: "127.0.0.1", port: 0, tls })).rejects.toMatchObject({
      code: "api.cannot_listen",
      message: expect.stringContaining(tls.cert),
    });
});
