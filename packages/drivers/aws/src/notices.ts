import { backoff, type DriverContext, messageOf, sleep } from "@nodeyard/driver";
import { type Notice, takeNotice } from "./machines/interruptions.ts";
import type { Parts } from "./machines/launch.ts";

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

/** By the `detail-type` of events that are read. */
const KINDS: ReadonlyMap<unknown, Notice["kind"]> = new Map([
  ["EC2 Instance State-change Notification", "state"],
  ["EC2 Spot Instance Interruption Warning", "interruption"],
]);

/**
 * The notice in a message of the queue; null for any other message, which is then deleted: a rule of EventBridge may send more
 * than is needed.
 */
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
 * Follows the notices for a provider until `stop` aborts: those of its queue, and those of the account's spot requests where there is none or
 * while it does not work. While neither can be read, changes are still seen by listings, only later. Never rejects.
 */
export async function followNotices(parts: Parts, context: DriverContext, stop: AbortSignal): Promise<void> {
  const { clock, random, log } = context;
  const { aws } = parts.account;
  const { noticeQueue } = parts.config.own;
  let isRead = noticeQueue !== null;
  // Only for spot requests, which stay listed. A queue's messages are deleted when they were taken.
  const seen = new Set<string>();

  /** False: it is to come again, from SQS after the queue's visibility timeout. */
  const took = async (notice: Notice | null): Promise<boolean> => {
    try {
      if (notice !== null) await takeNotice(parts, context, notice, stop);
      return true;
    } catch (error) {
      log.warn({ ...notice, error: messageOf(error) }, "cannot take a notice; it will come again");
      return false;
    }
  };

  /** Waits for messages once, takes them, and deletes those that were taken. */
  const readQueue = async (QueueUrl: string) => {
    const impaired = (why: string | null) => context.impaired?.("the notice queue", why);
    try {
      const request = { QueueUrl, MaxNumberOfMessages: MOST, WaitTimeSeconds: WAIT_S };
      const { Messages = [] } = await aws.call("sqs.receiveMessage", request, stop);
      const taken = Messages.map(async ({ Body = "", ReceiptHandle }, index) =>
        (await took(noticeOf(Body))) ? { Id: String(index), ReceiptHandle } : [],
      );
      const Entries = (await Promise.all(taken)).flat();
      if (Entries.length > 0) await aws.call("sqs.deleteMessageBatch", { QueueUrl, Entries }, stop);
      isRead = true;
      impaired(null);
    } catch (error) {
      isRead = false;
      impaired(`${messageOf(error)}; the spot requests are looked at instead, every ${LOOK_MS / 1_000} s`);
      throw error;
    }
  };

  /**
   * Takes spot requests whose machines EC2 takes back, while no queue is read. Their status changes at the notice, while the instance still
   * says that it runs for two minutes; closed requests stay in the list for a while.
   */
  const lookAtRequests = async () => {
    const request = { Filters: [{ Name: "status-code", Values: TAKEN_BACK }] };
    const call = "ec2.describeSpotInstanceRequests";
    const requests = isRead ? [] : await aws.list(call, "SpotInstanceRequests", request, stop);
    const listed = new Set(requests.map(({ InstanceId }) => InstanceId));
    for (const instance of seen) if (!listed.has(instance)) seen.delete(instance);
    for (const { InstanceId: instance, Status } of requests) {
      if (instance === undefined || seen.has(instance)) continue;
      const at = Status?.UpdateTime?.toISOString() ?? "its notice";
      if (await took({ kind: "interruption", instance, at })) seen.add(instance);
    }
    await sleep(clock, LOOK_MS, stop);
  };

  /** Does it again and again, with back-off after failures. */
  const repeated = async (work: () => Promise<void>) => {
    for (let failures = 0; !stop.aborted; ) {
      try {
        await work();
        failures = 0;
      } catch (error) {
        if (stop.aborted) return;
        const facts = { provider: parts.config.name, error: messageOf(error) };
        if (failures === 0) log.warn(facts, "cannot read notices; will retry");
        await sleep(clock, backoff(random, failures++, 1_000, SLOWEST_MS), stop).catch(() => {});
      }
    }
  };
  const reading = noticeQueue !== null && repeated(() => readQueue(noticeQueue));
  await Promise.all([repeated(lookAtRequests), reading]);
}
