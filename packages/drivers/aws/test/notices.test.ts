import { SQS } from "@aws-sdk/client-sqs";
import type { Tag } from "@nodeyard/driver";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { requireAws } from "../../../../testing/aws/index.ts";
import { patient } from "../../../../testing/patience.ts";
import { noticeOf } from "../src/notices.ts";
import { AwsRig, compile, contextOf } from "./rig.ts";

test("what EventBridge sends, and what else may be in a queue", () => {
  const event = {
    "detail-type": "EC2 Spot Instance Interruption Warning",
    time: "2026-01-31T10:00:00Z",
    detail: { "instance-id": "i-1", "instance-action": "terminate" },
  };
  expect(noticeOf(JSON.stringify(event))).toEqual({ kind: "interruption", instance: "i-1", at: event.time });
  for (const body of [
    "",
    "null",
    "7",
    '"x"',
    "{}",
    '{"detail-type": "constructor"}',
    JSON.stringify({ ...event, detail: {} }),
  ])
    expect(noticeOf(body)).toBeNull();
});

describe.skipIf(requireAws())("notices", () => {
  let rig: AwsRig;
  let queue: string;
  const { signal } = new AbortController();
  beforeAll(async () => {
    rig = await AwsRig.start();
    const sqs = new SQS({ region: rig.site.region, ...rig.client });
    queue = (await sqs.createQueue({ QueueName: "notices" })).QueueUrl!;
    await events("PutRule", { Name: "nodeyard", EventPattern: JSON.stringify({ source: ["aws.ec2"] }) });
    const Arn = `arn:aws:sqs:${rig.site.region}:123456789012:notices`;
    await events("PutTargets", { Rule: "nodeyard", Targets: [{ Id: "1", Arn }] });
  });
  afterEach(() => rig.closeProviders());
  afterAll(() => rig?.stop());

  async function events(action: string, body: object): Promise<void> {
    const headers = {
      "content-type": "application/x-amz-json-1.1",
      "x-amz-target": `AWSEvents.${action}`,
      authorization: `AWS4-HMAC-SHA256 Credential=a/20260101/${rig.site.region}/events/aws4_request`,
    };
    const answer = await fetch(rig.server.url, { method: "POST", headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(await answer.text());
  }

  async function spot(notices: string | null, nodeId: string) {
    const provider = notices === null ? {} : { "notice-queue": notices };
    const config = compile(rig.site, { small: { "use-spot": true } }, { provider });
    const remarks: [Tag, string][] = [];
    const remark = (tag: Tag, text: string) => void remarks.push([tag, text]);
    const said: (string | null)[] = [];
    const impaired = (part: string, why: string | null) => void said.push(why && `${part}: ${why}`);
    const opened = await rig.open(config, contextOf(undefined, { remark, impaired }));
    const order = rig.order(config, "small", nodeId);
    const machine = await rig.create(opened, order);
    const { instance } = machine.externalId as { instance: string };
    const handOver = () =>
      opened.offers!.handover!.ready(order.tag, { signal, externalId: machine.externalId });
    return { provider: opened, order, machine, instance, remarks, impaired: said, handOver };
  }

  const isEnded = async ({ provider, instance }: Awaited<ReturnType<typeof spot>>) => {
    const listed = await provider.list(signal);
    const found = listed.find(({ id }) => typeof id === "object" && id.instance === instance);
    return found === undefined || found.ended === true;
  };

  test("a spot machine that EC2 takes back is reported at once and gets no new user, also from a launcher that got no notice", async () => {
    const one = await spot(queue, "0000000001");
    await one.handOver();
    expect(await isEnded(one)).toBe(false);
    await rig.server.interrupt(one.instance, "terminate", 600_000);
    await vi.waitFor(() => expect(one.remarks).toHaveLength(1), { timeout: patient(45_000) });
    expect(one.remarks[0]).toEqual([
      one.order.tag,
      expect.stringContaining(`takes the spot machine ${one.instance} back`),
    ]);
    // The remark comes first, the tag of the instance after it.
    await vi.waitFor(() => expect(one.handOver()).rejects.toThrow("takes instance"), {
      timeout: patient(60_000),
    });
    expect(await isEnded(one)).toBe(true);
    const other = await rig.open(compile(rig.site));
    await expect(
      other.offers!.handover!.ready(one.order.tag, { signal, externalId: one.machine.externalId }),
    ).rejects.toThrow("takes instance");
    await rig.remove(one.provider, one.order, one.machine.externalId);
  });

  test("without a queue the status of its spot request says it, while it still runs", async () => {
    const one = await spot(null, "0000000004");
    await one.handOver();
    await rig.server.interrupt(one.instance, "terminate", 600_000);
    await vi.waitFor(() => expect(one.remarks).toHaveLength(1), { timeout: patient(60_000) });
    expect(one.remarks[0]![1]).toMatch(/takes the spot machine i-\w+ back two minutes after 20\d\d-/);
    await vi.waitFor(() => expect(one.handOver()).rejects.toThrow("takes instance"), {
      timeout: patient(60_000),
    });
    const machines = await rig.server.machines();
    expect(machines.find(({ id }) => id === one.instance)?.state).toBe("running");
    await rig.remove(one.provider, one.order, one.machine.externalId);
  });

  test("without a queue a machine that goes at once is seen when it has gone, and its removal says why", async () => {
    const one = await spot(null, "0000000002");
    await rig.server.interrupt(one.instance, "terminate", 0);
    await vi.waitFor(async () => expect(await isEnded(one)).toBe(true), { timeout: patient(45_000) });
    await expect(one.handOver()).rejects.toThrow();
    const remarks: (string | undefined)[] = [];
    const steps = one.provider.remove(one.order.tag, { signal, externalId: one.machine.externalId });
    for await (const { remark } of steps) remarks.push(remark);
    expect(remarks).toContainEqual(expect.stringContaining("Server.SpotInstanceTermination"));
  });

  test("a queue that is not there is said, and the spot requests are looked at in its place", async () => {
    const one = await spot(`${queue}-none`, "0000000003");
    await one.handOver();
    expect(one.impaired.at(-1)).toMatch(/^the notice queue: .*; the spot requests are looked at instead/);
    await rig.server.interrupt(one.instance, "terminate", 600_000);
    await vi.waitFor(() => expect(one.remarks).toHaveLength(1), { timeout: patient(60_000) });
    await rig.remove(one.provider, one.order, one.machine.externalId);
  });
});
