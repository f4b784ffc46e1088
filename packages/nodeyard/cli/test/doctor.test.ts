import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireTools } from "../../../../testing/skipped.ts";
import { freePort, makeCertificates } from "../../../../testing/zookeeper/index.ts";
import { fakeConfig, type Running, Site } from "./nodeyard.ts";

interface Diagnosis {
  readonly check: string;
  readonly ok: boolean;
  readonly text: string;
}

let site: Site;
let up: Running;
beforeAll(async () => {
  site = new Site(fakeConfig());
  up = await site.up();
});
afterAll(() => site.close());

async function doctor() {
  const { code, out } = await site.run("-c", site.config, "doctor", "--json");
  const found = JSON.parse(out) as Diagnosis[];
  // The exit code is that of the worst line.
  expect(code).toBe(found.every(({ ok }) => ok) ? 0 : 1);
  return Object.fromEntries(found.map(({ check, ok, text }) => [check, { ok, text }]));
}

test("doctor: what works is ok, and what does not says what to do; top: what there is", async () => {
  expect(await doctor()).toMatchObject({
    configuration: { ok: true, text: site.config },
    process: { ok: true, text: "ready" },
    tree: { ok: true },
    clock: { ok: true, text: expect.stringMatching(/ s (behind|ahead of) the tree's$/) },
    launchers: { ok: true, text: expect.stringMatching(/^1 pool on /) },
    clouds: { ok: true, text: "1 provider" },
  });
  const { out } = await site.run("-c", site.config, "doctor");
  expect(out).toMatch(/^ok {5}configuration {2}\S+nodepool\.yaml\n/);

  await site.json("request", "small:2", "--wait");
  await site.json("request", "large:5");
  expect(await site.json("top", "--once")).toEqual({
    providers: { "fake-cloud": { "in-use": 2 } },
    requests: { requested: 1 },
    oldest_age: expect.any(Number),
    leases: { granted: 1, waiting: 1 },
  });
  const { out: table } = await site.run("top", "--once");
  expect(table).toMatch(/\| fake-cloud \| 0 .*\| 2 +\|\n/);
  expect(table).toMatch(
    /\nrequests: 1 requested; the oldest waits for \d\d:\d\d:\d\d:\d\d\nleases: 1 (granted|waiting), 1 \w+\n$/,
  );

  await up.kill("SIGKILL");
  site.write(`${fakeConfig()}unheard-of: 1\n`);
  const broken = await doctor();
  expect(broken).toMatchObject({
    configuration: { ok: false, text: expect.stringContaining("config-validate --strict") },
    process: { ok: false, text: expect.stringContaining("start the daemon") },
    tree: { ok: false, text: expect.stringContaining("nodeyard up") },
  });
  expect(broken.clock).toBeUndefined();
});

describe.skipIf(requireTools("tests of certificates", "openssl"))(
  "doctor and what a configuration names",
  () => {
    test("certificates that end or do not fit, and ports that are closed or taken, with what to do", async () => {
      const taken = createServer().listen(0, "127.0.0.1");
      try {
        await once(taken, "listening");
        const { port } = taken.address() as AddressInfo;
        const closed = await freePort();
        const [good, short] = await Promise.all([90, 2].map(certificates));
        const [works, fails] = await Promise.all([
          examined(
            "works.yaml",
            `zookeeper-servers: [{host: 127.0.0.1, port: ${port}}]
zookeeper-tls: {cert: ${good!.cert}, key: ${good!.key}, ca: ${good!.ca}}
webapp: {listen_address: 127.0.0.1, port: ${closed}}
`,
          ),
          examined(
            "fails.yaml",
            `zookeeper-servers: [{host: 127.0.0.1, port: ${closed}}]
zookeeper-tls: {cert: ${short!.cert}, key: ${short!.key}, ca: ${short!.ca}}
webapp: {listen_address: 127.0.0.1, port: ${port}, tls: {cert: ${good!.cert}, key: ${short!.key}}}
`,
          ),
        ]);
        expect(works).toMatchObject({
          keys: { ok: true, text: expect.stringMatching(/^zookeeper-tls until \d{4}-\S+Z$/) },
          ports: {
            ok: true,
            text: `ZooKeeper 127.0.0.1:${port} answers; webapp 127.0.0.1:${closed} is free`,
          },
          // It accepts connections, and is no ZooKeeper.
          tree: { ok: false },
        });
        expect([fails!.keys?.ok, fails!.ports?.ok]).toEqual([false, false]);
        expect(fails!.keys?.text).toMatch(
          /^zookeeper-tls: \S+cert\.pem ends at \S+Z: renew it before; webapp\.tls: /,
        );
        expect(fails!.keys?.text).toContain(`${short!.key} is not the key of ${good!.cert}: name the one`);
        expect(fails!.ports?.text).toMatch(/^ZooKeeper \S+ does not answer \(.*ECONNREFUSED.*\): start it, /);
        expect(fails!.ports?.text).toMatch(
          /; webapp \S+ cannot be used \(.*EADDRINUSE.*\): stop the program /,
        );
      } finally {
        taken.close();
      }
    });
  },
);

function certificates(days: number) {
  const folder = join(site.folder, String(days));
  mkdirSync(folder);
  return makeCertificates(folder, days);
}

async function examined(name: string, extra: string) {
  const config = join(site.folder, name);
  writeFileSync(config, fakeConfig({ extra }));
  const { out } = await site.run("-c", config, "--state", join(site.folder, "none"), "doctor", "--json");
  const found = JSON.parse(out) as Diagnosis[];
  return Object.fromEntries(found.map(({ check, ok, text }) => [check, { ok, text }]));
}

test("the disk of images-dir is looked at, where it is on this machine", async () => {
  const site = new Site("");
  try {
    for (const [folder, text] of [
      [site.folder, /^\d+ MiB \(\d+ %\) free for \S+$/],
      [
        "/nonexistent/images",
        /^\/nonexistent\/images is no folder on this machine, so no builder can run here$/,
      ],
    ] as const) {
      site.write(`${fakeConfig()}images-dir: ${folder}\n`);
      const { out } = await site.run("-c", site.config, "doctor", "--json");
      const found = JSON.parse(out) as { check: string; ok: boolean; text: string }[];
      expect(found.find(({ check }) => check === "images-dir")).toMatchObject({
        ok: true,
        text: expect.stringMatching(text),
      });
    }
  } finally {
    await site.close();
  }
});
