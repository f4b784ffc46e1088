import type { Message } from "@aws-sdk/client-sqs";
import { backoff, type Clock, type Log, messageOf, type Random, sleep } from "@nodeyard/driver";
import type { Aws } from "./client/index.ts";

/** Seconds that one ReceiveMessage call waits for messages (long polling), the API's maximum. */
const WAIT_S = 20;
const MOST = 10;
const SLOWEST_MS = 60_000;

/** An event of EventBridge about an instance (Amazon EC2 User Guide, "Automate Amazon EC2 using EventBridge"). */
export interface Notice {
  readonly instance: string;
  /** state: the instance's state changed. interruption: EC2 interrupts a spot instance two minutes after `at`. */
  readonly kind: "state" | "interruption";
  /** ISO time. */
  readonly at: string;
}

const KINDS: Readonly<Record<string, Notice["kind"]>> = {
  "EC2 Instance State-change Notification": "state",
  "EC2 Spot Instance Interruption Warning": "interruption",
};

/** Null for any other message in the queue. */
export function noticeOf(body: string): Notice | null {
  let event: unknown;
  try {
    event = JSON.parse(body);
  } catch {
    return null;
  }
  if (typeof event !== "object" || event === null) return null;
  const { detail, time, "detail-type": type } = event as Readonly<Record<string, unknown>>;
  const kind = typeof type === "string" ? KINDS[type] : undefined;
  const instance = (detail as { "instance-id"?: unknown } | undefined)?.["instance-id"];
  return kind === undefined || typeof instance !== "string" ? null : { kind, instance, at: String(time) };
}

/** Dependencies of `readNotices`. */
export interface NoticeReader {
  readonly aws: Aws;
  readonly queue: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** When it rejects, SQS delivers the message again after the queue's visibility timeout. */
  take(notice: Notice): Promise<void>;
}

/** Reads the queue until `stop` aborts. While the queue cannot be read, changes are still seen by listings, only later. */
export async function readNotices(reader: NoticeReader, stop: AbortSignal): Promise<void> {
  const { aws, queue: QueueUrl, clock, random, log } = reader;
  for (let failures = 0; !stop.aborted; ) {
    try {
      const { Messages = [] } = await aws.sqs(
        (sqs, to) => sqs.receiveMessage({ QueueUrl, MaxNumberOfMessages: MOST, WaitTimeSeconds: WAIT_S }, to),
        stop,
      );
      const taken = await Promise.all(Messages.map((message) => takeOne(reader, message)));
      failures = 0;
      const Entries = taken.flatMap((ReceiptHandle, index) =>
        ReceiptHandle === undefined ? [] : [{ Id: String(index), ReceiptHandle }],
      );
      if (Entries.length > 0)
        await aws.sqs((sqs, to) => sqs.deleteMessageBatch({ QueueUrl, Entries }, to), stop);
    } catch (error) {
      if (stop.aborted) return;
      if (failures === 0)
        log.warn(
          { queue: QueueUrl, error: messageOf(error) },
          "cannot read the queue of notices; will retry",
        );
      await sleep(clock, backoff(random, failures++, 1_000, SLOWEST_MS), stop).catch(() => {});
    }
  }
}

/** The receipt handle for the deletion of the message; undefined: SQS is to deliver it again. */
async function takeOne({ take, log }: NoticeReader, message: Message): Promise<string | undefined> {
  const notice = noticeOf(message.Body ?? "");
  try {
    if (notice !== null) await take(notice);
    return message.ReceiptHandle;
  } catch (error) {
    log.warn({ ...notice, error: messageOf(error) }, "cannot take a notice; it will come again");
    return undefined;
  }
}
