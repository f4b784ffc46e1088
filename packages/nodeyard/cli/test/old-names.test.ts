import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { patient } from "../../../../testing/patience.ts";
import { fakeConfig, Running, Site } from "./nodeyard.ts";

const BIN = fileURLToPath(new URL("../src/bin/nodeyard.cjs", import.meta.url));

/** Of links to the program, as they would be in PATH. */
class Linked extends Site {
  constructor() {
    super(`zookeeper-servers: [{host: 127.0.0.1, port: 1}]\n${fakeConfig()}`);
  }

  named(name: string, ...words: readonly string[]): Running {
    const link = join(this.folder, name);
    if (!existsSync(link)) symlinkSync(BIN, link);
    return new Running(words, { NODEYARD_STATE: this.state }, [], link);
  }
}

// Most of both is the time that a program waits for its ZooKeeper.
test.concurrent("nodepool-launcher by its old name and options: pid file, level and file of -l, and what is not used is said", async ({
  onTestFinished,
}) => {
  const site = new Linked();
  onTestFinished(() => site.close());
  const [pid, logging, log] = ["pid", "logging.yaml", "launcher.log"].map((name) => join(site.folder, name));
  writeFileSync(
    logging!,
    `{version: 1, handlers: {main: {class: logging.FileHandler, filename: ${log}}}, loggers: {nodepool: {level: DEBUG, handlers: [main]}}}`,
  );
  const words = ["-c", site.config, "-l", logging!, "-p", pid!, "-f", "--no-webapp"];
  const launcher = site.named("nodepool-launcher", ...words);
  const text = () => (existsSync(log!) ? readFileSync(log!, "utf8") : launcher.err);
  await expect.poll(text, { timeout: patient(120_000) }).toContain("no ZooKeeper answers");
  expect(text()).toContain(`of ${logging} only level debug and file ${log} is used`);
  expect(readFileSync(pid!, "utf8")).toBe(`${launcher.child.pid}\n`);
  const second = await site.named("nodepool-launcher", ...words).ended;
  expect([second.code, second.err]).toEqual([
    1,
    expect.stringContaining(`names process ${launcher.child.pid}, which runs`),
  ]);
  expect((await launcher.kill("SIGTERM")).code).toBe(0);
  expect(existsSync(pid!)).toBe(false);
});

test.concurrent("nodepool-builder -d logs debug messages; nodepool takes the words of the old command line", async ({
  onTestFinished,
}) => {
  const site = new Linked();
  onTestFinished(() => site.close());
  const builder = site.named("nodepool-builder", "-c", site.config, "-d");
  const listed = site.named("nodepool", "-c", site.config, "list").ended;
  await builder.printed("no ZooKeeper answers");
  await builder.kill("SIGTERM");
  expect(await site.named("nodepool-builder", "--version").ended).toMatchObject({
    code: 0,
    out: expect.stringContaining("version: "),
  });
  const listing = await listed;
  expect([listing.code, listing.err]).toEqual([1, expect.stringContaining("no ZooKeeper answers")]);
});
