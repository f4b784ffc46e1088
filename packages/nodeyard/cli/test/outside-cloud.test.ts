import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Meadow } from "../../../../examples/driver-meadow/server/meadow.ts";
import { patient } from "../../../../testing/patience.ts";
import { Site } from "./nodeyard.ts";

const DRIVER = fileURLToPath(new URL("../../../../examples/driver-meadow/src/index.ts", import.meta.url));
const cloud = new Meadow("green-grass-of-home");

let site: Site;
beforeEach(async () => {
  site = new Site("");
  const token = join(site.folder, "meadow-token");
  writeFileSync(token, "green-grass-of-home\n");
  site.write(`
labels: [{name: lamb}]
providers:
  - name: meadow
    driver: ${DRIVER}
    endpoint: ${await cloud.start()}
    token-file: ${token}
    cloud-images: [{name: wool}]
    pools: [{name: main, labels: [{name: lamb, cloud-image: wool, flavor-name: lamb, address: true}]}]
`);
});
afterEach(async () => {
  await site.close();
  cloud.stop();
});

test("the commands of the page: the file is right, a machine of the cloud serves, and nothing stays of it", async () => {
  expect(await site.run("-c", site.config, "config-validate", "--strict")).toMatchObject({ code: 0 });
  await site.up();
  const { lease, nodes } = await site.json<{
    readonly lease: string;
    readonly nodes: readonly { readonly interface_ip: string; readonly connection_port: number }[];
  }>("request", "lamb", "--wait");
  const [{ interface_ip: host, connection_port: port } = { interface_ip: "", connection_port: 0 }] = nodes;
  const greeting = await new Promise<string>((resolve, reject) => {
    const socket = connect(port, host).setEncoding("utf8");
    socket.on("data", (text: string) => resolve(text)).on("error", reject);
  });
  expect([greeting, cloud.machines.size, cloud.addresses.size]).toEqual(["baa\n", 1, 1]);
  expect((await site.run("release", lease)).code).toBe(0);
  await expect.poll(() => cloud.machines.size + cloud.addresses.size, { timeout: patient(30_000) }).toBe(0);
});
