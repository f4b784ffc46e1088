import {
  Aborted,
  Closed,
  DeadlineExceeded,
  QueueFull,
  SessionExpired,
  type ZooKeeperError,
} from "../errors.ts";
import type { OpOptions, Timer } from "../types.ts";
import type { Request } from "../wire/messages.ts";
import type { Channel } from "./channel.ts";
import { ANY_EPOCH, Pending, type ReplyCallback } from "./pending.ts";
import { Ring } from "./ring.ts";
import type { Settings } from "./settings.ts";

/** Shortest time between two checks of deadlines (milliseconds). One timer serves all operations. */
const DEADLINE_GRAIN = 5;
/** Longest delay that Node's timers support (milliseconds). A timer that fires before the deadline is set again. */
const LONGEST_TIMER = 2 ** 31 - 1;
const NO_OPTIONS: OpOptions = {};

/**
 * Operations on their way to a channel: limits, deadlines, abort signals, and their failure when the channel is gone. Every operation
 * that `submit` takes gets one outcome. Operations are sent in the order of their calls; one that was given up while it waited is never
 * sent.
 */
export class RequestQueue {
  readonly #settings: Settings;
  readonly #epoch: () => number;
  readonly #waiting: Ring<Pending> = new Ring();
  /** How many of the waiting operations were aborted or timed out. They stay in the ring until a sweep. */
  #givenUp = 0;
  /** Undefined while there is no connection that is ready for operations. */
  #channel: Channel | undefined;
  #closed = false;
  #timer: Timer | undefined;
  /** For when the timer is set; no live operation has an earlier deadline. */
  #earliest = Number.POSITIVE_INFINITY;
  /** Callers of `whenIdle`, each called once. */
  #idlers: (() => void)[] = [];
  /** Callers of `whenWritable`, each called once. */
  #writers: (() => void)[] = [];

  /** `epoch` returns the epoch of the current session. */
  constructor(settings: Settings, epoch: () => number) {
    this.#settings = settings;
    this.#epoch = epoch;
  }

  /** Operations that wait and were not given up. This is what `maxQueued` limits. */
  get queued(): number {
    return this.#waiting.size - this.#givenUp;
  }

  get inFlight(): number {
    return this.#channel?.inFlight.size ?? 0;
  }

  /** Throws encoding errors; every other outcome goes to `onReply`. */
  submit(request: Request, onReply: ReplyCallback, options: OpOptions = NO_OPTIONS): void {
    const channel = this.#channel;
    const now = channel === undefined ? this.#settings.clock.monotonic() : channel.turn();
    const timeoutMs = options.deadlineMs ?? this.#settings.operationTimeoutMs;
    const deadline = now + timeoutMs;
    const pending = new Pending(request, onReply, deadline, timeoutMs, options.epoch ?? ANY_EPOCH);
    const refusal = this.#refusal(pending, options.signal);
    if (refusal !== undefined) {
      pending.settle(refusal, undefined);
      return;
    }
    if (channel !== undefined && this.#waiting.size === 0 && channel.hasRoom) {
      if (!this.#send(channel, pending)) return;
    } else {
      this.#waiting.push(pending);
    }
    if (options.signal !== undefined) this.#listen(pending, options.signal);
    if (deadline < this.#earliest) this.#arm(deadline, now);
  }

  /** Sends operations over `channel` from now on, waiting ones first. */
  attach(channel: Channel): void {
    this.#channel = channel;
    this.pump();
  }

  /** The channel is gone: operations in flight fail with `error`, waiting operations keep waiting. */
  detach(error: (pending: Pending) => ZooKeeperError): void {
    const channel = this.#channel;
    this.#channel = undefined;
    if (channel === undefined) return;
    for (const pending of channel.inFlight.take()) pending.settle(error(pending), undefined);
    this.#settled();
  }

  /** Empties the waiting queue and returns it, so that operations submitted while the caller fails these are not affected. */
  takeWaiting(): Pending[] {
    this.#givenUp = 0;
    return this.#waiting.take();
  }

  /** Fails all operations, present and future. */
  close(cause?: Error): void {
    this.#closed = true;
    this.detach((pending) => new Closed(pending.details(cause)));
    for (const pending of this.takeWaiting()) pending.settle(new Closed(pending.details(cause)), undefined);
    this.#timer?.cancel();
    this.#settled();
  }

  /** Accepts no more operations and fails those that wait. Operations in flight may still finish. */
  shut(): void {
    this.#closed = true;
    for (const pending of this.takeWaiting()) pending.settle(new Closed(pending.details()), undefined);
  }

  /** Sends waiting operations until the channel has no room. */
  pump(): void {
    const channel = this.#channel;
    while (channel !== undefined && channel === this.#channel && channel.hasRoom) {
      const pending = this.#waiting.shift();
      if (pending === undefined) break;
      if (pending.settled) {
        this.#givenUp--;
        continue;
      }
      if (pending.epoch !== ANY_EPOCH && pending.epoch !== this.#epoch()) {
        pending.settle(new SessionExpired(pending.details()), undefined);
        continue;
      }
      this.#send(channel, pending);
    }
    this.#settled();
  }

  /** Calls `fn` when nothing waits and nothing is in flight. */
  whenIdle(fn: () => void): void {
    this.#idlers.push(fn);
    this.#settled();
  }

  /** Calls `fn` once less than half of `maxQueued` operations wait. */
  whenWritable(fn: () => void): void {
    this.#writers.push(fn);
    this.#settled();
  }

  /** Why an operation cannot be taken at all; undefined when it can. */
  #refusal(pending: Pending, signal: AbortSignal | undefined): ZooKeeperError | undefined {
    if (this.#closed) return new Closed(pending.details());
    if (signal?.aborted) return new Aborted(pending.details(signal.reason));
    if (pending.epoch !== ANY_EPOCH && pending.epoch !== this.#epoch()) {
      return new SessionExpired(pending.details());
    }
    const limit = this.#settings.maxQueued;
    return this.queued >= limit ? new QueueFull(limit, pending.details()) : undefined;
  }

  /** False: it could not be encoded and has failed. */
  #send(channel: Channel, pending: Pending): boolean {
    try {
      channel.send(pending);
      return true;
    } catch (error) {
      pending.settle(error as ZooKeeperError, undefined);
      return false;
    }
  }

  /** An abort settles the operation at once. When it was sent already, its place in flight stays taken until the reply. */
  #listen(pending: Pending, signal: AbortSignal): void {
    pending.signal = signal;
    pending.onAbort = () => {
      const waits = Number.isNaN(pending.sentAt);
      pending.settle(new Aborted(pending.details(signal.reason)), undefined);
      if (waits) this.#giveUp();
    };
    signal.addEventListener("abort", pending.onAbort, { once: true });
  }

  #arm(deadline: number, now: number): void {
    this.#earliest = deadline;
    this.#timer?.cancel();
    const wait = Math.min(Math.max(deadline - now, DEADLINE_GRAIN), LONGEST_TIMER);
    this.#timer = this.#settings.clock.setTimer(wait, () => this.#expire(), { background: true });
  }

  /** Fails what is past its deadline. It looks at every operation, which is why checks have a shortest distance. */
  #expire(): void {
    const now = this.#settings.clock.monotonic();
    this.#earliest = Number.POSITIVE_INFINITY;
    let earliest = Number.POSITIVE_INFINITY;
    const live = [...(this.#channel?.inFlight.toArray() ?? []), ...this.#waiting.toArray()];
    for (const pending of live) {
      if (pending.settled) continue;
      if (pending.deadline <= now) {
        const waits = Number.isNaN(pending.sentAt);
        pending.settle(new DeadlineExceeded(pending.timeoutMs, pending.details()), undefined);
        if (waits) this.#giveUp();
      } else if (pending.deadline < earliest) {
        earliest = pending.deadline;
      }
    }
    if (earliest < this.#earliest) this.#arm(earliest, now);
  }

  /**
   * Counts an abandoned operation. The ring is swept only when half of it is abandoned, so that a sweep's cost is spread over many calls.
   */
  #giveUp(): void {
    this.#givenUp++;
    if (this.#givenUp * 2 >= this.#waiting.size) {
      for (const pending of this.takeWaiting()) if (!pending.settled) this.#waiting.push(pending);
    }
    this.#settled();
  }

  /** Called whenever there may be fewer operations than before. */
  #settled(): void {
    if (this.#idlers.length > 0 && this.queued === 0 && this.inFlight === 0) callAll(this.#idlers.splice(0));
    if (this.#writers.length > 0 && this.queued * 2 < this.#settings.maxQueued) {
      callAll(this.#writers.splice(0));
    }
  }
}

function callAll(fns: readonly (() => void)[]): void {
  for (const fn of fns) fn();
}
