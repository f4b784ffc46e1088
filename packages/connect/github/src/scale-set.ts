import type { ConnectorParts, RunnerPool, RunnerPools } from "@nodeyard/connect";
import { abortable, backoff, messageOf, sleep } from "@nodeyard/runtime";
import type { Options } from "./options.ts";
import type { QueueMessage, ScaleSetService, Session } from "./service.ts";

const [FIRST_PAUSE_MS, MAX_PAUSE_MS] = [1_000, 30_000];

/** One scale set: its queue of messages, and how many runners it wants. */
export class ScaleSet {
  readonly #service: ScaleSetService;
  readonly #options: Options;
  readonly #parts: ConnectorParts;
  #id: Promise<number> | undefined;

  constructor(service: ScaleSetService, options: Options, parts: ConnectorParts) {
    this.#service = service;
    this.#options = options;
    this.#parts = parts;
  }

  /** Its number at GitHub. Rejects with SystemError. */
  id(): Promise<number> {
    const { "scale-set": name, group, "runs-on": labels = [name] } = this.#options;
    this.#id ??= this.#service.scaleSet(name, group, labels);
    this.#id.catch(() => {
      this.#id = undefined;
    });
    return this.#id;
  }

  /** Follows the queue until it is stopped, from a session to the next. Never rejects. */
  async follow(pool: RunnerPool, all: RunnerPools, stopping: AbortSignal): Promise<void> {
    const { clock, random, log, counters, name } = this.#parts;
    let isAdopted = false;
    let session: Session | undefined;
    // One that stays open would refuse the next, so it is closed until that is answered.
    const close = async () => {
      if (session !== undefined) await this.#service.close(session);
      session = undefined;
    };
    for (let attempt = 0; !stopping.aborted; attempt++) {
      try {
        await close();
        if (!isAdopted) await abortable(all.adopt(), stopping);
        isAdopted = true;
        const id = await this.id();
        session = await this.#service.open(id, `${name}@nodeyard`);
        if (session === undefined)
          throw new Error("another session is open; it ends when its client does, or by itself");
        log.info(
          { session: session.sessionId, assigned: session.statistics.totalAssignedJobs },
          "follows the queue of jobs",
        );
        pool.want(this.#wanted(session.statistics.totalAssignedJobs));
        await this.#messages(id, session, pool, stopping, () => {
          attempt = 0;
        });
      } catch (error) {
        // It may have been deleted at GitHub.
        this.#id = undefined;
        if (!stopping.aborted) {
          counters.add("connect.calls", 1, { connector: name, call: "session", result: "failed" });
          const pause = backoff(random, attempt, FIRST_PAUSE_MS, MAX_PAUSE_MS);
          log.error(
            { error: messageOf(error), retryMs: Math.round(pause) },
            "cannot follow the queue of jobs; will retry",
          );
          await sleep(clock, pause, stopping).catch(() => {});
        }
      }
      await close().catch(() => {});
    }
  }

  /** Rejects when the session cannot be used any more. `onAnswer`: the queue has answered, and a message was dealt with. */
  async #messages(
    id: number,
    opened: Session,
    pool: RunnerPool,
    stopping: AbortSignal,
    onAnswer: () => void,
  ): Promise<void> {
    const { counters, name } = this.#parts;
    let session = opened;
    let last = 0;
    let assigned = session.statistics.totalAssignedJobs;
    for (let renewals = 0; !stopping.aborted; ) {
      const message = await this.#service.next(session, last, this.#capacity(pool), stopping);
      if (message === "expired") {
        if (++renewals > 1) throw new Error("the queue refuses the token of a session that was just renewed");
        session = await this.#service.renew(id, session);
        continue;
      }
      renewals = 0;
      if (message !== undefined) {
        await this.#take(id, session, message, pool);
        pool.want(this.#wanted(message.assigned));
        // After the rest, unlike GitHub's own client: a message whose acknowledgment is lost is gone, and its jobs with it.
        await this.#service.acknowledge(session, message.id);
        last = message.id;
        assigned = message.assigned;
        counters.add("connect.calls", 1, { connector: name, call: "message", result: "ok" });
      }
      onAnswer();
      pool.want(this.#wanted(assigned));
    }
  }

  async #take(id: number, session: Session, { jobs }: QueueMessage, pool: RunnerPool): Promise<void> {
    const { log } = this.#parts;
    const offered = jobs
      .filter(({ messageType }) => messageType === "JobAvailable")
      .map((job) => job.runnerRequestId);
    if (offered.length > 0 && !(await this.#service.acquire(id, session, offered)))
      // Not again: the message would come for ever.
      log.warn({ requests: offered }, "GitHub refuses jobs that it has offered");
    for (const { messageType, runnerName, result, ...job } of jobs) {
      const url = new URL(this.#options.url);
      url.pathname = `/${job.ownerName}/${job.repositoryName}/actions/runs/${job.workflowRunId}`;
      const { jobId: id, jobDisplayName: display } = job;
      if (messageType === "JobStarted") pool.busy(runnerName, { id, name: display || null, url: url.href });
      if (messageType !== "JobCompleted") continue;
      pool.done(runnerName, result === "succeeded");
      log.info({ job: id, runner: runnerName, result }, "a job has ended");
    }
  }

  /** GitHub counts those that wait for a runner of this set, and those that run; counting messages would drift. */
  #wanted(assigned: number): number {
    return Math.min(assigned, this.#options.most);
  }

  /**
   * What GitHub may assign at most. While a runner waits longer than usual for its node the pool is full, and further jobs are left to other
   * sets.
   */
  #capacity({ runners }: RunnerPool): number {
    const { full, most } = this.#options;
    const now = this.#parts.clock.monotonic();
    const isFull = [...runners.values()].some(
      ({ state, since }) => state === "waiting" && now - since > full * 1_000,
    );
    return isFull ? Math.min(runners.size, most) : most;
  }
}
