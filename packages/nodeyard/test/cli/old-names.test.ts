import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fakeConfig, Running, Site } from "./nodeyard.ts";

const BIN = fileURLToPath(new URL("../../src/bin/nodeyard.cjs", import.meta.url));
let site: Site;
beforeEach(() => {
  site = new Site(`zookeeper-servers: [{host: 127.0.0.1, port: 1}]\n${fakeConfig()}`);
});
afterEach(() => site.close());

/** A link to the program, as it would be in PATH. */
function named(name: string, ...words: readonly string[]): Running {
  const link = join(site.folder, name);
  if (!existsSync(link)) symlinkSync(BIN, link);
  return new Running(words, { NODEYARD_STATE: site.state }, [], link);
}

test("nodepool-launcher by its old name and options: pid file, level and file of -l, and what is not used is said", async () => {
  const [pid, logging, log] = ["pid", "logging.yaml", "launcher.log"].map((name) => join(site.folder, name));
  writeFileSync(
    logging!,
    `{version: 1, handlers: {main: {class: logging.FileHandler, filename: ${log}}}, loggers: {nodepool: {level: DEBUG, handlers: [main]}}}`,
  );
  const words = ["-c", site.config, "-l", logging!, "-p", pid!, "-f", "--no-webapp"];
  const launcher = named("nodepool-launcher", ...words);
  const text = () => (existsSync(log!) ? readFileSync(log!, "utf8") : launcher.err);
  await expect.poll(text, { timeout: 30_000 }).toContain("no ZooKeeper answers");
  expect(text()).toContain(`of ${logging} only level debug and file ${log} is used`);
  expect(readFileSync(pid!, "utf8")).toBe(`${launcher.child.pid}\n`);
  const second = await named("nodepool-launcher", ...words).ended;
  expect([second.code, second.err]).toEqual([
    1,
    expect.stringContaining(`names process ${launcher.child.pid}, which runs`),
  ]);
  expect((await launcher.kill("SIGTERM")).code).toBe(0);
  expect(existsSync(pid!)).toBe(false);
});

test("nodepool-builder -d logs debug messages; nodepool takes the words of the old command line", async () => {
  const builder = named("nodepool-builder", "-c", site.config, "-d");
  await builder.told("no ZooKeeper answers");
  await builder.kill("SIGTERM");
  expect(await named("nodepool-builder", "--version").ended).toMatchObject({
    code: 0,
    out: expect.stringContaining("version: "),
  });
  const listing = await named("nodepool", "-c", site.config, "list").ended;
  expect([listing.code, listing.err]).toEqual([1, expect.stringContaining("no ZooKeeper answers")]);
});
