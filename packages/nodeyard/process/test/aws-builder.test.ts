import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AwsServer, requireAws, startAws } from "../../../../testing/aws/index.ts";
import { patient } from "../../../../testing/patience.ts";
import { Site } from "../../cli/test/nodeyard.ts";

const BLOCK = 512 * 1024;
/** Blocks with data, and those with none after each: what is sent, and what is not. */
const DATA = 200;
/** Blocks that arrive before the builder is killed; more than are between two checkpoints. */
const BEFORE = 110;
/** Under way at the moment of the kill, which the server may count later. */
const LATE = 32;

interface Upload {
  readonly state: string;
  readonly external_id: { readonly pieces?: number } | null;
}

async function uploadOf(site: Site): Promise<Upload | undefined> {
  const [upload] = await site.json<readonly Upload[]>("image-list");
  return upload;
}

describe.skipIf(requireAws())("a builder and AWS", () => {
  let aws: AwsServer;
  let site: Site;
  beforeAll(async () => {
    aws = await startAws();
    const { region } = await aws.site();
    Object.assign(process.env, aws.env);
    site = new Site("");
    mkdirSync(join(site.folder, "images"));
    const script = join(site.folder, "make-image");
    const loop = `i=0; while [ $i -lt ${DATA} ]; do printf "block $i" | dd of="$f" bs=${BLOCK} seek=$((2 * i)) conv=notrunc status=none; i=$((i + 1)); done`;
    writeFileSync(script, `#!/bin/sh\nset -e\nf="$DIB_IMAGE_FILENAME.raw"\n${loop}\n`);
    chmodSync(script, 0o755);
    site.write(`
images-dir: ${site.folder}/images
build-log-dir: ${site.folder}/logs
labels: []
diskimages:
  - {name: small, build-command: [${script}], username: tester}
providers:
  - name: ec2
    driver: aws
    region-name: ${region}
    rate: 0
    diskimages: [{name: small, import-method: ebs-direct}]
    pools: []
`);
  });
  afterAll(async () => {
    await site?.close();
    await aws?.close();
  });

  test("an upload whose builder is killed goes on after a restart: one snapshot, one image, and no block sent in vain", async () => {
    await aws.set({ faults: [{ call: "ebs.PutSnapshotBlock", how: "hold", after: BEFORE }] });
    const first = await site.up();
    const sent = async () => (await aws.counts())["ebs.PutSnapshotBlock"] ?? 0;
    await expect.poll(sent, { timeout: patient(120_000) }).toBeGreaterThan(BEFORE);
    let stored = 0;
    const look = async () => {
      stored = (await uploadOf(site))?.external_id?.pieces ?? 0;
      return stored;
    };
    await expect.poll(look).toBeGreaterThan(0);
    await first.kill("SIGKILL");
    const before = await sent();
    await aws.reset();

    const second = await site.up();
    await second.printed("upload ready");
    const external_id = expect.stringMatching(/^ami-/);
    expect(await uploadOf(site)).toMatchObject({ state: "ready", external_id });
    const counts = await aws.counts();
    expect(counts).toMatchObject({ "ebs.StartSnapshot": 1, "ec2.RegisterImage": 1 });
    expect((await sent()) - before).toBeLessThan(DATA - stored + LATE);
    const [put] = await aws.calls("ebs.PutSnapshotBlock");
    const [, snapshot] = /^\/snapshots\/([^/]+)/.exec(put!.params.path!)!;
    const { blocks, status } = await aws.blocks(snapshot!);
    expect(status).toBe("completed");
    expect(Object.keys(blocks).map(Number)).toEqual(Array.from({ length: DATA }, (_, number) => 2 * number));
  });
});
