/** A job of a workflow, as the service has it. */
export interface Job {
  /** `runnerRequestId` of messages. */
  readonly request: number;
  readonly id: string;
  readonly name: string;
  /** What its runner runs by sh. */
  readonly line: string;
  state: "available" | "acquired" | "running" | "done";
  runner?: string;
  result?: string;
}

/** A runner that was registered for one job. */
export interface Agent {
  readonly id: number;
  readonly name: string;
  readonly secret: string;
  /** It has connected. */
  isOnline: boolean;
  job?: Job;
}

export interface Message {
  readonly id: number;
  readonly body: readonly object[];
}

export interface Session {
  readonly id: string;
  queueToken: string;
}

/** A scale set with its queue of messages and its jobs. */
export class ScaleSet {
  readonly id: number;
  readonly name: string;
  readonly labels: readonly string[];
  readonly jobs: Job[] = [];
  readonly agents = new Map<number, Agent>();
  session: Session | undefined;
  /** Not acknowledged yet. */
  readonly queue: Message[] = [];
  /** Capacities that the client has named, in their order. */
  readonly capacities: number[] = [];
  #ids = 0;
  #pending: object[] = [];
  readonly #waiting = new Set<() => void>();

  constructor(id: number, name: string, labels: readonly string[]) {
    this.id = id;
    this.name = name;
    this.labels = labels;
  }

  get statistics() {
    const count = (...states: readonly Job["state"][]) =>
      this.jobs.filter(({ state }) => states.includes(state)).length;
    const busy = [...this.agents.values()].filter(({ job }) => job !== undefined).length;
    return {
      totalAvailableJobs: count("available"),
      totalAcquiredJobs: count("acquired"),
      // Those that wait for a runner of this set, and those that run.
      totalAssignedJobs: count("acquired", "running"),
      totalRunningJobs: count("running"),
      totalRegisteredRunners: this.agents.size,
      totalBusyRunners: busy,
      totalIdleRunners: this.agents.size - busy,
    };
  }

  add(line: string): Job {
    const request = 100 + this.jobs.length;
    const job: Job = {
      request,
      id: `job-${this.id}-${request}`,
      name: `build ${request}`,
      line,
      state: "available",
    };
    this.jobs.push(job);
    this.tell("JobAvailable", job, { acquireJobUrl: "unused" });
    return job;
  }

  acquire(requests: readonly number[]): readonly number[] {
    const taken = this.jobs.filter(
      ({ request, state }) => requests.includes(request) && state === "available",
    );
    for (const job of taken) {
      job.state = "acquired";
      this.tell("JobAssigned", job);
    }
    return taken.map(({ request }) => request);
  }

  /** The job that a runner gets, once. */
  start(agent: Agent): Job | undefined {
    agent.isOnline = true;
    const job = agent.job ?? this.jobs.find(({ state }) => state === "acquired");
    if (job === undefined || agent.job !== undefined) return job;
    agent.job = job;
    job.state = "running";
    job.runner = agent.name;
    this.tell("JobStarted", job, { runnerId: agent.id, runnerName: agent.name });
    return job;
  }

  end(agent: Agent, result: string): void {
    const { job } = agent;
    if (job === undefined || job.state === "done") return;
    job.state = "done";
    job.result = result;
    this.agents.delete(agent.id);
    this.tell("JobCompleted", job, { result, runnerId: agent.id, runnerName: agent.name });
  }

  cancel(job: Job): void {
    job.state = "done";
    job.result = "canceled";
    this.tell("JobCompleted", job, { result: "canceled", runnerId: 0, runnerName: "" });
  }

  tell(messageType: string, job: Job, more: object = {}): void {
    const base = {
      ownerName: "org",
      repositoryName: "repo",
      workflowRunId: 7,
      jobWorkflowRef: "w",
      eventName: "push",
    };
    this.#pending.push({
      messageType,
      runnerRequestId: job.request,
      jobId: job.id,
      jobDisplayName: job.name,
      ...base,
      ...more,
    });
    for (const wake of this.#waiting) wake();
  }

  /** The oldest message after `last` that was not acknowledged; waits so long for one, milliseconds. */
  async next(last: number, waitMs: number): Promise<Message | undefined> {
    if (this.#pending.length > 0) {
      this.#ids++;
      // At most 50 in one message.
      this.queue.push({ id: this.#ids, body: this.#pending.splice(0, 50) });
    }
    const found = this.queue.find(({ id }) => id > last) ?? this.queue[0];
    if (found !== undefined || waitMs <= 0) return found;
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        resolve();
      };
      const timer = setTimeout(end, waitMs);
      this.#waiting.add(end);
    });
    return this.next(last, 0);
  }
}
