import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseCloudFile } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { loadContext } from "../../../../testing/cloud-rig.ts";
import { API_KEY, REGION } from "../../../../testing/ibmvpc/index.ts";
import { ibmvpcConfig } from "../src/index.ts";
import { IbmRig } from "./rig.ts";

const PAGE = join(import.meta.dirname, "../../../../docs/how-to/connect-ibm.md");

test("connect-ibm.md: the provider of the page launches a machine", async () => {
  const [, block = ""] = /```sh by=\S*how-to\.test\.ts\n([\s\S]*?)```/.exec(readFileSync(PAGE, "utf8")) ?? [];
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-ibm-"));
  const rig = new IbmRig({ startMs: 20_000 });
  try {
    writeFileSync(join(folder, "nodeyard"), '#!/bin/sh\necho "$@" > validated\n', { mode: 0o755 });
    const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, REGION };
    execFileSync("sh", ["-eu", "-c", block], { cwd: folder, env });
    expect(readFileSync(join(folder, "validated"), "utf8")).toBe("-c nodepool.yaml config-validate\n");
    const file = parseCloudFile(readFileSync(join(folder, "nodepool.yaml"), "utf8")) as {
      readonly providers: readonly Readonly<Record<string, unknown>>[];
    };
    const provider = file.providers[0]!;
    expect(ibmvpcConfig.schema.safeParse(provider).error).toBeUndefined();
    const config = ibmvpcConfig.load(provider, loadContext(["debian"]))!;
    // What the commands of the page make beforehand.
    rig.texts.set(String(provider["credentials-file"]), `VPC_AUTH_TYPE=iam\nVPC_APIKEY=${API_KEY}\n`);
    const opened = await rig.open(config);
    const order = rig.order(config, "0000000001", { az: `${REGION}-2` });
    expect(await rig.create(opened, order)).toMatchObject({
      az: `${REGION}-2`,
      publicIpv4: expect.any(String),
    });
  } finally {
    await rig.stop();
    rmSync(folder, { recursive: true });
  }
});
