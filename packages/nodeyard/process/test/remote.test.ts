import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { requireTools } from "../../../../testing/skipped.ts";
import { type Certificates, makeCertificates } from "../../../../testing/zookeeper/index.ts";
import { fakeConfig, Site } from "../../cli/test/nodeyard.ts";

interface Granted {
  readonly lease: string;
  readonly nodes: readonly object[];
}

const missing = requireTools("tests of remote clients", "openssl");

let site: Site;
let certificates: Certificates;
let client: string;
beforeEach(async () => {
  site = new Site(fakeConfig());
  certificates = await makeCertificates(site.folder);
  client = `${site.folder}/client.yaml`;
});
afterEach(() => site.close());

/** `up` on a free port, all interfaces; writes the file that a client on another machine would have. */
async function listening(): Promise<number> {
  const { cert, key, ca } = certificates;
  const tls = ["--tls-cert", cert, "--tls-key", key, "--tls-ca", ca];
  const up = site.start("-c", site.config, "up", "--listen", "0.0.0.0:0", ...tls);
  await up.printed("Nodeyard is up");
  return Number(/0\.0\.0\.0:(\d+)/.exec(up.err)![1]);
}

test.skipIf(missing)("a client elsewhere needs a certificate, and then everything works", async () => {
  const port = await listening();
  const { cert, key, ca } = certificates;
  const servers = `zookeeper-servers:\n  - {host: 127.0.0.1, port: ${port}}\n`;
  writeFileSync(client, `${servers}zookeeper-tls: {cert: ${cert}, key: ${key}, ca: ${ca}}\n`);
  // No state folder of a Nodeyard is near: only the file leads there.
  const elsewhere = ["--state", `${site.folder}/elsewhere`, "-c", client];
  const granted = await site.json<Granted>(...elsewhere, "request", "small", "--wait");
  expect(granted.nodes).toHaveLength(1);
  expect((await site.run(...elsewhere, "release", granted.lease)).code).toBe(0);

  writeFileSync(client, servers);
  const refused = await site.run(...elsewhere, "list");
  expect([refused.code, refused.out]).toEqual([1, ""]);
  expect(refused.err).toMatch(/^nodeyard: no ZooKeeper answers at 127\.0\.0\.1:\d+ within/);
});
