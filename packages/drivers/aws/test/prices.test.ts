import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { requireAws } from "../../../../testing/aws/index.ts";
import { AwsRig, compile } from "./rig.ts";

describe.skipIf(requireAws())("prices", () => {
  let rig: AwsRig;
  const { signal } = new AbortController();
  beforeAll(async () => {
    rig = await AwsRig.start();
  });
  afterEach(async () => {
    await rig.closeProviders();
    await rig.server.reset();
    await rig.server.forgetCalls();
  });
  afterAll(() => rig?.stop());

  const FLEET = { "instance-types": ["t3.xlarge", "t3.large"], "allocation-strategy": "prioritized" };
  const LABELS = {
    small: {},
    spot: { "use-spot": true },
    host: { "dedicated-host": true, "instance-type": "m5.large" },
    fleet: { fleet: FLEET },
    odd: { "instance-type": "is4gen.medium" },
  };
  const open = (labels: object, provider: object) => {
    const pool = { "availability-zone": "us-west-2a" };
    const config = compile(rig.site, labels as typeof LABELS, { pool, provider });
    return rig.open(config).then((opened) => ({ config, opened, ...opened.offers! }));
  };

  test("by the API: on demand, spot by zone, hosts by family; asked once, and null where nothing is listed", async () => {
    const { config, types, prices } = await open(LABELS, { "price-api": true });
    const of = (label: string, az: string | null = "us-west-2a") =>
      prices!.of(types!.of(config.pools[0]!.labels.get(label)!), az, signal);
    expect(await of("small")).toEqual({ perHour: 0.0416, currency: "USD" });
    expect(await of("spot")).toEqual({ perHour: 0.0125, currency: "USD" });
    expect(await of("spot", "us-west-2b")).toEqual({ perHour: 0.0131, currency: "USD" });
    // Of several zones the dearest: no launch costs more than that.
    expect(await of("spot", null)).toEqual({ perHour: 0.0131, currency: "USD" });
    expect(await of("spot", "us-west-2c")).toBeNull();
    expect(await of("host")).toEqual({ perHour: 5.069, currency: "USD" });
    expect([await of("fleet"), await of("odd")]).toEqual([null, null]);
    const asked = (await rig.server.calls("pricing.GetProducts")).map(({ region }) => region);
    expect(asked).toEqual(["us-east-1", "us-east-1", "us-east-1"]);
    expect(await rig.server.calls("ec2.DescribeSpotPriceHistory")).toHaveLength(1);
  });

  test("a machine of a fleet says what it was bought as", async () => {
    const { config, opened, prices } = await open(LABELS, { "price-api": true });
    const machine = await rig.create(opened, rig.order(config, "fleet", "0000000001"));
    expect(machine.type).toBe("t3.xlarge");
    expect(await prices!.of(machine.type!, machine.az!, signal)).toEqual({
      perHour: 0.1664,
      currency: "USD",
    });
  });

  test("without the key AWS is not asked", async () => {
    const { prices } = await open({ small: {} }, {});
    expect(prices).toBeUndefined();
  });

  test("an API that refuses is an error of the question alone", async () => {
    await rig.server.set({
      faults: [{ call: "pricing.GetProducts", code: "AccessDeniedException", times: 1 }],
    });
    const { prices } = await open({ small: {} }, { "price-api": true });
    await expect(prices!.of("t3.medium", null, signal)).rejects.toMatchObject({ kind: "access" });
    expect(await prices!.of("t3.medium", null, signal)).not.toBeNull();
  });
});
