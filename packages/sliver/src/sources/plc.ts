import { type Clock, deadline, type Random, type Timer } from "@nodeyard/runtime";
import { parseResponse, writeCall, type XmlRpcValue } from "../api/index.ts";
import { deliverFull, readGetSlivers } from "../core/index.ts";
import type { Manager, ManagerLog } from "../manager/index.ts";
import type { WireProfile } from "../profiles/index.ts";
import { PlcFaultError, PlcTimeoutError } from "./errors.ts";
import { Failures } from "./failures.ts";

/** Sends one XML-RPC call and brings the text of its answer. */
export type Post = (call: string, signal: AbortSignal) => Promise<string>;

export interface PlcOptions {
  readonly manager: Manager;
  readonly profile: WireProfile;
  readonly post: Post;
  /** First argument of each call: `{AuthMethod: "session", session: ...}`. */
  readonly auth: XmlRpcValue;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ManagerLog;
  /** Milliseconds between polls; up to half as much again is added by chance (docs/contract/slivers.md, "GetSlivers"). */
  readonly period: number;
}

/** Longest answer, characters. */
const MAX_REPLY = 16 * 1024 * 1024;

/** Documents as PlanetLab's centre gives them: polled, trusted for where they come from, ordered by timestamp. */
export class PlcSource {
  readonly #options: PlcOptions;
  readonly #stop = new AbortController();
  readonly #told: Failures;
  #timer: Timer | undefined;
  #polling: Promise<void> | undefined;

  constructor(options: PlcOptions) {
    this.#options = options;
    this.#told = new Failures("GetSlivers", options.log);
  }

  /** Polls now, and then for ever. Whatever fails leaves everything as it is until the next time. */
  start(): void {
    this.#polling = this.#poll()
      .then(
        () => this.#told.worked(),
        (error) => {
          if (!this.#stop.signal.aborted) this.#told.failed(error);
        },
      )
      .finally(() => {
        this.#polling = undefined;
        if (this.#stop.signal.aborted) return;
        const { clock, random, period } = this.#options;
        const wait = period * (1 + random.float() / 2);
        this.#timer = clock.setTimer(wait, () => this.start(), { background: true });
      });
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#stop.abort(new PlcTimeoutError("the sliver manager is stopping"));
    await this.#polling;
  }

  async #poll(): Promise<void> {
    const { manager, profile, post, auth, clock, period } = this.#options;
    const late = () => new PlcTimeoutError(`no answer within ${period / 2000} s`);
    const limit = deadline(clock, period / 2, late, this.#stop.signal);
    let text: string;
    try {
      text = await post(writeCall("GetSlivers", [auth]), limit.signal);
    } finally {
      limit.cancel();
    }
    const response = parseResponse(text, MAX_REPLY);
    if ("fault" in response) throw new PlcFaultError(JSON.stringify(response.fault).slice(0, 300));
    const tags = { defaults: profile.policy.defaults, resources: profile.resources };
    const delivery = readGetSlivers(response.value, manager.options.node, tags);
    await manager.change((state) => {
      const { state: next } = deliverFull(state, delivery, manager.options.capacity);
      return { state: next, result: undefined };
    });
  }
}
