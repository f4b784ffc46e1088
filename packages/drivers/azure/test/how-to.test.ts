import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseCloudFile } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { LOCATION } from "../../../../testing/azure/index.ts";
import { azureConfig } from "../src/index.ts";
import { AUTH, AzureRig } from "./rig.ts";

const PAGE = join(import.meta.dirname, "../../../../docs/how-to/connect-azure.md");

test("connect-azure.md: the provider of the page launches a machine", async () => {
  const [, block = ""] = /```sh by=\S*how-to\.test\.ts\n([\s\S]*?)```/.exec(readFileSync(PAGE, "utf8")) ?? [];
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-azure-"));
  try {
    writeFileSync(join(folder, "nodeyard"), '#!/bin/sh\necho "$@" > validated\n', { mode: 0o755 });
    const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, LOCATION, GROUP: "nodes" };
    execFileSync("sh", ["-eu", "-c", block], { cwd: folder, env });
    expect(readFileSync(join(folder, "validated"), "utf8")).toBe("-c nodepool.yaml config-validate\n");
    const file = parseCloudFile(readFileSync(join(folder, "nodepool.yaml"), "utf8")) as {
      readonly providers: readonly Readonly<Record<string, unknown>>[];
    };
    const provider = file.providers[0]!;
    expect(azureConfig.schema.safeParse(provider).error).toBeUndefined();
    const found: unknown[] = [];
    const labels = new Set(["debian"]);
    const config = azureConfig.load(provider, {
      labels,
      diskimages: new Map(),
      report: (one) => found.push(one),
    })!;
    expect(found).toEqual([]);
    const rig = new AzureRig({ bootMs: 20_000 });
    rig.texts.set(String(provider["auth-path"]), JSON.stringify(AUTH));
    const opened = await rig.open(config);
    const machine = await rig.create(opened, rig.orderOf(config, "debian", 1, { az: "2" }));
    expect(machine).toMatchObject({ az: "2", region: LOCATION });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
