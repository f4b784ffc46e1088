import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@nodeyard/zookeeper";
import { afterEach, expect, test } from "vitest";
import { makeCertificates } from "../../../../../testing/zookeeper/index.ts";
import { type Bench, startBench } from "./bench.ts";

const folders: string[] = [];
let bench: Bench | undefined;

afterEach(async () => {
  await bench?.close();
  bench = undefined;
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

async function certificates() {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-tls-"));
  folders.push(folder);
  const paths = await makeCertificates(folder);
  const read = (path: string) => readFileSync(path, "utf8");
  return { ca: read(paths.ca), cert: read(paths.cert), key: read(paths.key) };
}

test("beyond loopback nothing is served in the clear", async () => {
  for (const host of ["0.0.0.0", "::", "192.0.2.1", "example.org"]) {
    await expect(startBench({ tcp: { host } })).rejects.toMatchObject({
      code: "tree.listen_refused",
      message: expect.stringContaining("give a certificate, a key and a CA, or listen on 127.0.0.1"),
    });
  }
});

test("with TLS only clients with a certificate of the authority get in", async () => {
  const tls = await certificates();
  bench = await startBench({ tcp: { tls } });
  const zk = await connect(bench.hosts, { tls });
  await zk.create("/tls");
  expect(await bench.tree.children("/")).toEqual(["tls"]);
  await zk.close();

  const strangers = await certificates();
  for (const offered of [{ ca: tls.ca }, { ...strangers, ca: tls.ca }]) {
    const attempt = connect(bench.hosts, { tls: offered, deadlineMs: 500 });
    await expect(attempt).rejects.toThrow();
  }
  await expect(connect(bench.hosts, { deadlineMs: 500 })).rejects.toThrow();
  expect(await bench.tree.children("/")).toEqual(["tls"]);
});
