import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AwsServer, requireAws, startAws } from "../../../../testing/aws/index.ts";
import { type Granted, Site } from "../../cli/test/nodeyard.ts";

// Numbers in titles are those of docs/contract/checks.md, "AWS".

interface Story {
  readonly state: string;
  readonly about: { readonly failed_because: string | null };
  readonly waits_for: { readonly code: string; readonly facts: { readonly resource?: string } } | null;
}

const LABELS: Readonly<Record<string, string>> = {
  tiny: "instance-type: t3.nano",
  odd: "instance-type: is4gen.medium",
  nope: "instance-type: t3.nope",
  big: "instance-type: u-6tb1.112xlarge",
  spot: "instance-type: m6i.32xlarge, use-spot: true",
  demand: "instance-type: m6i.32xlarge",
  gp2: "instance-type: t3.nano, volume-type: gp2, volume-size: 1000",
  gp3: "instance-type: t3.nano, volume-type: gp3, volume-size: 1000",
  fleet: "fleet: {instance-types: [t3.xlarge], allocation-strategy: prioritized}",
  four: "instance-type: t3.xlarge",
};
/** vCPUs; what the labels below take of standard instances leaves too little for `four` beside `fleet`. */
const QUOTAS = {
  ec2: { "L-43DA4232": 448, "L-34B43A08": 200, "L-1216C47A": 128 + 3 * 2 + 6 },
  ebs: { "L-D18FCD1D": 1, "L-7A658B76": 10 },
};

/** What a Nodeyard of one process makes of an account's quotas, by its command line. */
describe.skipIf(requireAws())("quotas of an account", () => {
  let aws: AwsServer;
  let site: Site;
  beforeAll(async () => {
    aws = await startAws();
    const { region, images, key, subnets } = await aws.site();
    await aws.set({ quotas: QUOTAS, enforce: true });
    Object.assign(process.env, aws.env);
    const common = `cloud-image: ubuntu, key-name: ${key}`;
    site = new Site(`
labels: [${Object.keys(LABELS).map((name) => `{name: ${name}}`)}]
providers:
  - name: ec2
    driver: aws
    region-name: ${region}
    rate: 0
    cloud-images: [{name: ubuntu, image-id: ${images[0]}, username: ubuntu}]
    pools:
      - name: main
        subnet-id: ${Object.values(subnets)[0]}
        host-key-checking: false
        labels:
${Object.entries(LABELS)
  .map(([name, keys]) => `          - {name: ${name}, ${common}, ${keys}}\n`)
  .join("")}`);
    await site.up();
  });
  afterAll(async () => {
    await site?.close();
    await aws?.close();
  });

  const wait = (label: string) => site.json<Granted>("request", label, "--wait");
  /** Asks until it waits for that. */
  async function waits(label: string, resource: string): Promise<Granted> {
    const asked = await site.json<Granted>("request", label);
    const look = async () => (await site.json<Story>("explain", asked.lease)).waits_for?.facts.resource;
    await expect.poll(look).toBe(resource);
    return asked;
  }

  test("9 to 13, 16: what is beyond a quota waits with its code, and nothing else does", async () => {
    const failed = await site.run("request", "nope", "--wait");
    expect(failed.err).toContain("every pool declined nope");
    expect((await site.run("explain", "label", "nope")).out).toContain("no instance type t3.nope");

    const big = await wait("big");
    const second = await waits("big", "L-43DA4232");
    await wait("tiny");
    await wait("odd");
    await site.run("release", big.lease);
    const state = async () => (await site.json<Story>("explain", second.lease)).state;
    await expect.poll(state).toBe("granted");

    await wait("spot");
    // The waiting request is withdrawn, so that the next request is not behind it.
    await site.run("release", (await waits("spot", "L-34B43A08")).lease);
    await wait("demand");

    await wait("gp2");
    await site.run("release", (await waits("gp2", "L-D18FCD1D")).lease);
    await wait("gp3");

    // Before its launch nobody knows what a fleet takes.
    await wait("fleet");
    await waits("four", "L-1216C47A");
  });
});
