import type { Message } from "@aws-sdk/client-sqs";
import { backoff, type Clock, type Log, messageOf, type Random, sleep } from "@nodeyard/driver";
import type { Aws } from "./client/index.ts";

/** Seconds that one question waits for messages; the API's most. */
const WAIT_S = 20;
const MOST = 10;
const SLOWEST_MS = 60_000;

/** What EventBridge tells of an instance (Amazon EC2 User Guide, "Automate Amazon EC2 using EventBridge"). */
export interface Notice {
  readonly instance: string;
  /** state: its state has changed. interruption: EC2 takes a spot machine back, two minutes from `at`. */
  readonly kind: "state" | "interruption";
  /** ISO time. */
  readonly at: string;
}

const KINDS: Readonly<Record<string, Notice["kind"]>> = {
  "EC2 Instance State-change Notification": "state",
  "EC2 Spot Instance Interruption Warning": "interruption",
};

/** Null for anything else that comes through the queue. */
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

/** What the queue is read with. */
export interface NoticeReader {
  readonly aws: Aws;
  readonly queue: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** A notice that it rejects comes again when the queue's visibility timeout has passed. */
  take(notice: Notice): Promise<void>;
}

/** Reads the queue until `stop` aborts. A queue that cannot be read only means that everything is seen by listings, later. */
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

/** The handle to delete it by; undefined: it is to come again. */
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
