import { abortable } from "@nodeyard/driver";
import { errorClass } from "@nodeyard/runtime";
import type { Action, LaunchWanted, SchedulerEvent } from "@nodeyard/scheduler";
import type { FailureRecords, Permit } from "./failure-records.ts";

/** The scheduler refuses the launch for now; the request is planned again. */
export class LaunchRefused extends errorClass("launcher.launch_refused") {}

type Answer = Extract<Action, { type: "launch" | "refuse-launch" }>;

/** A launch that may begin; `instead`: as another offering than was asked for. */
interface Begun {
  readonly permit: Permit;
  readonly instead: Extract<Answer, { type: "launch" }>["instead"];
}

const PERMITTED = { probe: false, instead: undefined };

/** Launches that wait for the scheduler to let them begin. */
export class Launches {
  /** Where each launch must report its end. */
  readonly records: FailureRecords;
  readonly #push: (event: SchedulerEvent) => void;
  readonly #now: () => number;
  /** By node id; a node has one launch at a time. */
  readonly #asked = new Map<string, PromiseWithResolvers<Answer>>();

  /** `now`: milliseconds of the monotonic clock. */
  constructor(records: FailureRecords, push: (event: SchedulerEvent) => void, now: () => number) {
    this.records = records;
    this.#push = push;
    this.#now = now;
  }

  /**
   * To be awaited before each launch. `permitted`: the plan has permitted it; else the scheduler is asked. Rejects with LaunchRefused, or
   * with the signal's reason. A permit must be ended by `records.failed`, `succeeded` or `leave`.
   */
  async begin(launch: LaunchWanted, permitted: boolean, signal: AbortSignal): Promise<Begun> {
    const { request, counted } = launch;
    const label = counted ? launch.label : null;
    // Before the question, so that the scheduler decides with the failures that this process has counted.
    if (label !== null) this.records.know(label);
    const { probe, instead } = permitted ? PERMITTED : await this.#ask(launch, signal);
    const offering = instead === undefined ? launch.offering : { ...launch.offering, type: instead.type };
    const permit = { offering, label, request, began: this.#now() };
    this.records.begin(permit);
    try {
      // The scheduler picked this request as the test, but of several launchers only the first to make the znode tests.
      if (probe && !(await this.records.try(permit)))
        throw new LaunchRefused(`no launches of ${launch.label} for now: another request is testing it`);
      return { permit, instead };
    } catch (error) {
      await this.records.leave(permit);
      throw error;
    }
  }

  /** Resolves when the launch may begin, and as what. */
  async #ask(launch: LaunchWanted, signal: AbortSignal): Promise<Extract<Answer, { type: "launch" }>> {
    const { node } = launch;
    const asked = Promise.withResolvers<Answer>();
    this.#asked.set(node, asked);
    this.#push({ type: "launch-wanted", launch });
    let answer: Answer;
    try {
      answer = await abortable(asked.promise, signal);
    } catch (error) {
      this.#push({ type: "launch-given-up", node });
      throw error;
    } finally {
      this.#asked.delete(node);
    }
    if (answer.type === "refuse-launch") throw new LaunchRefused(answer.why);
    return answer;
  }

  /** What the scheduler says of one. An answer for a launch that was given up meanwhile is ignored. */
  answer(action: Answer): void {
    this.#asked.get(action.node)?.resolve(action);
  }
}
