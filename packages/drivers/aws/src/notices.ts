import { backoff, messageOf, sleep, tagOf } from "@nodeyard/driver";
import type { Site } from "./account.ts";
import { INTERRUPTED, isInterrupted } from "./machines/instances.ts";
import { metadataOf } from "./tags.ts";

/** Seconds that one ReceiveMessage call waits for messages (long polling), the API's maximum. */
const WAIT_S = 20;
/** Messages per call, the API's maximum. */
const MOST = 10;
/** Longest pause after failures, milliseconds. */
const SLOWEST_MS = 60_000;
/** Between two looks at spot requests: users have two minutes. */
const LOOK_MS = 10_000;
/** Status of a spot request from the interruption notice on (Amazon EC2 User Guide, "Spot request status", "Fulfilled-terminal"). */
const TAKEN_BACK = [
  "marked-for-termination",
  "instance-terminated-no-capacity",
  "instance-terminated-capacity-oversubscribed",
  "instance-terminated-by-price",
];

/** An event of EventBridge about an instance (Amazon EC2 User Guide, "Automate Amazon EC2 using EventBridge"). */
interface Notice {
  readonly instance: string;
  /** state: the instance's state changed. interruption: EC2 interrupts a spot instance two minutes after `at`. */
  readonly kind: "state" | "interruption";
  /** ISO time. */
  readonly at: string;
}

/** By the `detail-type` of events that are read. */
const KINDS: ReadonlyMap<unknown, Notice["kind"]> = new Map([
  ["EC2 Instance State-change Notification", "state"],
  ["EC2 Spot Instance Interruption Warning", "interruption"],
]);

/** The notice in a message of the queue; null for any other, which is then deleted: a rule of EventBridge may send more than is needed. */
export function noticeOf(body: string): Notice | null {
  try {
    const event = JSON.parse(body);
    const kind = KINDS.get(event["detail-type"]);
    const instance: unknown = event.detail["instance-id"];
    if (kind !== undefined && typeof instance === "string") return { kind, instance, at: String(event.time) };
  } catch {
    // Neither JSON nor an event.
  }
  return null;
}

/**
 * Follows the notices for a provider until it is `closed`: those of its queue, and those of the account's spot requests where there is none or
 * while it does not work. While neither can be read, changes are still seen by listings, only later. Never rejects.
 */
export async function followNotices(site: Site): Promise<void> {
  const { aws, instances, clock, random, log, installation, remark, impaired, closed } = site;
  const { noticeQueue } = site.config.own;
  const provider = site.config.name;
  let isRead = noticeQueue !== null;

  /** Notices of other providers and installations are read too, as they share the account, and are passed over. */
  const take = async ({ kind, instance: id, at }: Notice) => {
    // Any change of state may be one that a step waits for.
    instances.hint();
    if (kind !== "interruption") return;
    const instance = (await instances.all(closed, true)).get(id);
    const tag = tagOf(metadataOf(instance?.Tags));
    if (instance === undefined || tag?.installation !== installation || tag.provider !== provider) return;
    // Another launcher has taken it.
    if (isInterrupted(instance)) return;
    // Before the tag is set: if the launcher dies in between, the notice comes again and users see it twice, not never.
    remark?.(tag, `EC2 takes the spot machine ${id} back two minutes after ${at}`, true);
    const Tags = [{ Key: INTERRUPTED, Value: at }];
    await aws.call("ec2.createTags", { Resources: [id], Tags }, closed);
    // From now on the shared list shows the tag to every reader of this process.
    await instances.all(closed, true);
    log.warn({ node: tag.nodeId, instance: id, at }, "EC2 takes a spot machine back");
  };

  /** False: it is to come again, from SQS after the queue's visibility timeout. */
  const took = async (notice: Notice | null): Promise<boolean> => {
    try {
      if (notice !== null) await take(notice);
      return true;
    } catch (error) {
      log.warn({ ...notice, error: messageOf(error) }, "cannot take a notice; it will come again");
      return false;
    }
  };

  /** Waits for messages once, takes them, and deletes those that were taken. */
  const readQueue = async (QueueUrl: string) => {
    const said = (why: string | null) => impaired?.("the notice queue", why);
    try {
      const request = { QueueUrl, MaxNumberOfMessages: MOST, WaitTimeSeconds: WAIT_S };
      const { Messages = [] } = await aws.call("sqs.receiveMessage", request, closed);
      const taken = Messages.map(async ({ Body = "", ReceiptHandle }, index) =>
        (await took(noticeOf(Body))) ? { Id: String(index), ReceiptHandle } : [],
      );
      const Entries = (await Promise.all(taken)).flat();
      if (Entries.length > 0) await aws.call("sqs.deleteMessageBatch", { QueueUrl, Entries }, closed);
      isRead = true;
      said(null);
    } catch (error) {
      isRead = false;
      said(`${messageOf(error)}; the spot requests are looked at instead, every ${LOOK_MS / 1_000} s`);
      throw error;
    }
  };

  /** Instances whose requests were taken. These stay listed for a while; a queue's messages are deleted when they were taken. */
  let seen: ReadonlySet<string> = new Set();
  /** Takes spot requests whose machines EC2 takes back, while no queue is read. At the notice only their status changes, not the instance's. */
  const lookAtRequests = async () => {
    const request = { Filters: [{ Name: "status-code", Values: TAKEN_BACK }] };
    const call = "ec2.describeSpotInstanceRequests";
    const requests = isRead ? [] : await aws.list(call, "SpotInstanceRequests", request, closed);
    const taken = requests.map(async ({ InstanceId: instance, Status }) => {
      if (instance === undefined) return [];
      const at = Status?.UpdateTime?.toISOString() ?? "its notice";
      return seen.has(instance) || (await took({ kind: "interruption", instance, at })) ? instance : [];
    });
    seen = new Set((await Promise.all(taken)).flat());
    await sleep(clock, LOOK_MS, closed);
  };

  /** Does it again and again, with back-off after failures. */
  const repeated = async (work: () => Promise<void>) => {
    for (let failures = 0; !closed.aborted; ) {
      try {
        await work();
        failures = 0;
      } catch (error) {
        if (closed.aborted) return;
        if (failures === 0)
          log.warn({ provider, error: messageOf(error) }, "cannot read notices; will retry");
        await sleep(clock, backoff(random, failures++, 1_000, SLOWEST_MS), closed).catch(() => {});
      }
    }
  };
  const reading = noticeQueue !== null && repeated(() => readQueue(noticeQueue));
  await Promise.all([repeated(lookAtRequests), reading]);
}
