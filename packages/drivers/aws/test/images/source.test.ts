import { EC2 } from "@aws-sdk/client-ec2";
import { SSM } from "@aws-sdk/client-ssm";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { requireAws } from "../../../../../testing/aws/index.ts";
import { AwsRig, compile } from "../rig.ts";

// Numbers in titles are those of docs/contract/checks.md, "AWS".

describe.skipIf(requireAws())("what a cloud image stands for", () => {
  let rig: AwsRig;
  const made: string[] = [];
  const options = () => ({
    region: rig.site.region,
    endpoint: rig.server.url,
    credentials: { accessKeyId: "testing", secretAccessKey: "testing" },
  });
  beforeAll(async () => {
    rig = await AwsRig.start();
    const ec2 = new EC2(options());
    for (const name of ["nodes-1", "nodes-2", "other"]) {
      const { ImageId } = await ec2.registerImage({ Name: name, RootDeviceName: "/dev/sda1" });
      made.push(ImageId!);
      // Creation dates have seconds.
      await new Promise((resolve) => setTimeout(resolve, 1_100));
    }
  });
  afterEach(() => rig?.closeProviders());
  afterAll(() => rig?.stop());

  async function launched(image: object, times = 1) {
    const images = { "cloud-images": [{ name: "ubuntu", username: "ubuntu", ...image }] };
    const config = compile(rig.site, { small: {} }, { provider: images });
    const provider = await rig.open(config);
    await rig.server.forgetCalls();
    for (let number = 1; number <= times; number++)
      await rig.create(
        provider,
        rig.order(config, "small", `${1000000000 + Math.floor(Math.random() * 1e9)}`),
      );
    const runs = await rig.server.calls("ec2.RunInstances");
    const lookups = (await rig.server.calls("ec2.DescribeImages")).filter(
      ({ params }) => "Filter.1.Name" in params,
    );
    return { images: runs.map(({ params }) => params.ImageId), lookups: lookups.map(({ params }) => params) };
  }

  test.each([
    ["name", "values"],
    ["Name", "Values"],
  ])(
    "8: the newest image that filters of %s and %s match is launched, looked up once for all launches",
    async (name, values) => {
      const { images, lookups } = await launched(
        { "image-filters": [{ [name]: "name", [values]: ["nodes-*"] }], "image-owners": "self" },
        2,
      );
      expect(images).toEqual([made[1], made[1]]);
      expect(lookups).toHaveLength(1);
      expect(lookups[0]).toMatchObject({
        "Filter.1.Name": "name",
        "Filter.1.Value.1": "nodes-*",
        "Owner.1": "self",
      });
    },
  );

  test("a parameter of Systems Manager names the image", async () => {
    await new SSM(options()).putParameter({ Name: "/nodes/image", Value: made[2]!, Type: "String" });
    const { images } = await launched({ "image-parameter": "/nodes/image" });
    expect(images).toEqual([made[2]]);
  });

  test("filters without a match, and a parameter that is none, fail the launch as configuration", async () => {
    const filters = [{ name: "name", values: ["none-*"] }];
    await expect(launched({ "image-filters": filters })).rejects.toMatchObject({ kind: "configuration" });
    await expect(launched({ "image-parameter": "/none" })).rejects.toMatchObject({ kind: "configuration" });
  });
});
