import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { requireTools } from "../../../../../testing/skipped.ts";
import { type Bench, startBench } from "./bench.ts";

const ZKCLI = "/usr/share/zookeeper/bin/zkCli.sh";
const run = promisify(execFile);

describe.skipIf(requireTools("tests with zkCli.sh", ZKCLI, "java"))("zkCli.sh", () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await startBench();
  });
  afterAll(() => bench.close());

  async function zkCli(...command: string[]): Promise<string> {
    const { stdout } = await run(ZKCLI, ["-server", bench.hosts, ...command], { timeout: patient(80_000) });
    return stdout;
  }

  test("creates, lists and reads", async () => {
    await zkCli("create", "/cli", "hello");
    expect(await zkCli("ls", "/")).toContain("[cli]");
    const got = await zkCli("get", "-s", "/cli");
    expect(got).toContain("hello");
    expect(got).toMatch(/dataVersion = 0/);
    expect(await bench.tree.children("/")).toEqual(["cli"]);
  });
});
