import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EC2 } from "@aws-sdk/client-ec2";
import type { Resource } from "@nodeyard/driver";
import { type ConformanceRig, driverConformance } from "@nodeyard/driver-testkit";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireAws } from "../../../../testing/aws/index.ts";
import { awsDriver } from "../src/index.ts";
import { AwsRig, compile, contextOf, SECRETS } from "./rig.ts";

/** Most of a test is waiting, so several run at once, each at a server of its own. */
const SERVERS = 3;

describe.skipIf(requireAws())("the conformance kit against AWS's wire", () => {
  const idle: AwsRig[] = [];
  const waiting: ((rig: AwsRig) => void)[] = [];
  beforeAll(async () => {
    for (let started = 0; started < SERVERS; started++) idle.push(await AwsRig.start());
  });
  afterAll(() => Promise.all(idle.map((rig) => rig.stop())));

  const data = Buffer.alloc(3 << 20, "an image");
  const hash = (kind: string) => createHash(kind).update(data).digest("hex");
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-aws-"));
  const sums = { sha256: hash("sha256"), md5: hash("md5") };
  const image = { file: join(folder, "image.raw"), format: "raw", size: data.byteLength, own: {}, ...sums };
  writeFileSync(image.file, data);
  afterAll(() => rmSync(folder, { recursive: true }));

  const taken = () => {
    const rig = idle.pop();
    return rig === undefined ? new Promise<AwsRig>((resolve) => waiting.push(resolve)) : Promise.resolve(rig);
  };

  async function setup(): Promise<ConformanceRig> {
    const rig = await taken();
    const { server, site } = rig;
    const diskimages = [{ name: "conformance", "import-method": "ebs-direct" }];
    const config = compile(site, { small: {} }, { provider: { diskimages } });
    const fleet = { "instance-types": ["t3.medium"], "allocation-strategy": "prioritized" };
    const queue = { diskimages, "notice-queue": `${server.url}/123456789012/notices` };
    const other = compile(site, { small: {}, large: { fleet } }, { provider: queue });
    const [pool] = config.pools;
    const client = new EC2({ region: site.region, ...rig.client });
    return {
      clock: systemClock,
      providerName: config.name,
      suspends: true,
      pool: pool!,
      label: pool!.labels.get("small")!,
      image: async () => image,
      // Another copy of the file, with a fleet and a queue: a launcher with it would make a template, and take the notices.
      open: (installation, purpose = "serve") =>
        rig.open(purpose === "look" ? other : config, contextOf(installation, { purpose })),
      writes: async () => {
        const calls = (await server.calls()).map(({ call }) => call);
        return calls.filter((call) => !/\.(Describe|List|Get|Head)/.test(call));
      },
      openElsewhere: (installation) =>
        rig.open(compile({ ...site, region: "us-east-1" }, { small: {} }), contextOf(installation)),
      drive: (work) => work,
      settle: async () => {},
      fillQuota: async () => {
        await server.set({ enforce: true, quotas: { ec2: { "L-1216C47A": 1 }, ebs: {} } });
      },
      breakList: () => {
        const faults = [{ call: "ec2.DescribeInstances", code: "InternalError", status: 500, times: 4 }];
        return server.set({ faults });
      },
      refuse: async () => {
        const refusal = { code: "UnauthorizedOperation", status: 403, times: 1_000 };
        const calls = ["RunInstances", "DescribeInstances"].map((name) => ({
          call: `ec2.${name}`,
          ...refusal,
        }));
        await server.set({ faults: calls });
      },
      silence: async () => {
        await server.set({ faults: [{ call: "ec2.RunInstances", how: "silence" }] });
      },
      async quoteSecrets() {
        const { secretAccessKey, sessionToken } = SECRETS;
        const message = `the signature does not match: x-amz-security-token:${sessionToken} ${secretAccessKey}`;
        const refusal = { code: "SignatureDoesNotMatch", message, status: 403, times: 1_000 };
        await server.set({ faults: [{ call: "ec2.RunInstances", ...refusal }] });
        return [secretAccessKey, sessionToken];
      },
      async denyRemoval() {
        const code = "InvalidInstanceID.NotFound";
        await server.set({ faults: [{ call: "ec2.TerminateInstances", code, status: 400, times: 1 }] });
      },
      async loseTag({ id }) {
        const { Tags } = await client.describeTags({
          Filters: [{ Name: "resource-id", Values: [idOf(id)] }],
        });
        await client.deleteTags({ Resources: [idOf(id)], Tags: Tags!.map(({ Key }) => ({ Key })) });
      },
      async emptyList() {
        await server.set({ faults: [{ call: "ec2.DescribeInstances", how: "empty" }] });
        return () => server.set({ faults: [] });
      },
      async makeForeign() {
        const one = { MinCount: 1, MaxCount: 1, InstanceType: "t3.micro" } as const;
        await client.runInstances({ ...one, ImageId: site.images[0] });
      },
      async stop() {
        await rig.closeProviders();
        await server.reset();
        await empty(client);
        const next = waiting.shift();
        if (next === undefined) idle.push(rig);
        else next(rig);
      },
    };
  }

  driverConformance("aws", awsDriver, setup, { describe, test: test.concurrent, expect });
});

function idOf(id: Resource["id"]): string {
  return String(typeof id === "string" ? id : id.instance);
}

async function empty(client: EC2): Promise<void> {
  const { Images } = await client.describeImages({ Owners: ["self"] });
  for (const { ImageId } of Images ?? []) await client.deregisterImage({ ImageId });
  const { Snapshots } = await client.describeSnapshots({ OwnerIds: ["self"] });
  for (const { SnapshotId } of Snapshots ?? []) await client.deleteSnapshot({ SnapshotId });
  const { Reservations = [] } = await client.describeInstances();
  const ids = Reservations.flatMap(({ Instances = [] }) => Instances.map(({ InstanceId }) => InstanceId!));
  if (ids.length > 0) await client.terminateInstances({ InstanceIds: ids });
}
