import { backoff, type Clock, type Log, messageOf, type Random, sleep } from "@nodeyard/driver";
import type { Aws } from "./client/index.ts";

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
export interface Notice {
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

/** Dependencies of `followNotices`. */
export interface NoticeReader {
  readonly aws: Aws;
  /** Null: there is none, and the spot requests of the account are looked at instead. */
  readonly queue: string | null;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Takes why the queue does not work; null: it does. */
  readonly impaired: (why: string | null) => void;
  /** When it rejects, the notice comes again: from SQS after the queue's visibility timeout. */
  take(notice: Notice): Promise<void>;
}

/**
 * Reads notices until `stop` aborts: from the queue, and from the spot requests where there is none or while it does not work. While neither
 * can be read, changes are still seen by listings, only later.
 */
export async function followNotices(reader: NoticeReader, stop: AbortSignal): Promise<void> {
  const { queue, clock, impaired } = reader;
  let isRead = queue !== null;
  // Only for spot requests, which stay listed. A queue's messages are deleted when they were taken.
  const seen = new Set<string>();
  const look = async () => {
    if (!isRead) await lookAtRequests(reader, seen, stop);
    await sleep(clock, LOOK_MS, stop);
  };
  const read = async (url: string) => {
    try {
      await readQueue(reader, url, stop);
    } catch (error) {
      isRead = false;
      impaired(`${messageOf(error)}; the spot requests are looked at instead, every ${LOOK_MS / 1_000} s`);
      throw error;
    }
    isRead = true;
    impaired(null);
  };
  await Promise.all([
    repeated(reader, look, stop),
    queue !== null && repeated(reader, () => read(queue), stop),
  ]);
}

/** Does it again and again, with back-off after failures. Never rejects. */
async function repeated(
  { queue, clock, random, log }: NoticeReader,
  work: () => Promise<void>,
  stop: AbortSignal,
): Promise<void> {
  for (let failures = 0; !stop.aborted; ) {
    try {
      await work();
      failures = 0;
    } catch (error) {
      if (stop.aborted) return;
      if (failures === 0) log.warn({ queue, error: messageOf(error) }, "cannot read notices; will retry");
      await sleep(clock, backoff(random, failures++, 1_000, SLOWEST_MS), stop).catch(() => {});
    }
  }
}

/** Waits for messages once, takes them, and deletes those that were taken. The others come again after the queue's visibility timeout. */
async function readQueue(reader: NoticeReader, QueueUrl: string, stop: AbortSignal): Promise<void> {
  const { aws } = reader;
  const request = { QueueUrl, MaxNumberOfMessages: MOST, WaitTimeSeconds: WAIT_S };
  const { Messages = [] } = await aws.call("sqs.receiveMessage", request, stop);
  const taken = await Promise.all(
    Messages.map(async ({ Body = "", ReceiptHandle }, index) =>
      (await took(reader, noticeOf(Body))) ? { Id: String(index), ReceiptHandle } : [],
    ),
  );
  const Entries = taken.flat();
  if (Entries.length > 0) await aws.call("sqs.deleteMessageBatch", { QueueUrl, Entries }, stop);
}

/**
 * Spot requests whose machines EC2 takes back. Their status changes at the notice, while the instance still says that it runs for two
 * minutes; closed requests stay in the list for a while. `seen`: instances whose notice was taken.
 */
async function lookAtRequests(reader: NoticeReader, seen: Set<string>, stop: AbortSignal): Promise<void> {
  const Filters = [{ Name: "status-code", Values: TAKEN_BACK }];
  const call = "ec2.describeSpotInstanceRequests";
  const requests = await reader.aws.list(call, "SpotInstanceRequests", { Filters }, stop);
  const listed = new Set(requests.map(({ InstanceId }) => InstanceId));
  for (const instance of seen) if (!listed.has(instance)) seen.delete(instance);
  for (const { InstanceId: instance, Status } of requests) {
    if (instance === undefined || seen.has(instance)) continue;
    const at = Status?.UpdateTime?.toISOString() ?? "its notice";
    if (await took(reader, { kind: "interruption", instance, at })) seen.add(instance);
  }
}

/** False: it is to come again. */
async function took({ take, log }: NoticeReader, notice: Notice | null): Promise<boolean> {
  try {
    if (notice !== null) await take(notice);
    return true;
  } catch (error) {
    log.warn({ ...notice, error: messageOf(error) }, "cannot take a notice; it will come again");
    return false;
  }
}
