import { type HttpCall, httpCall, refusal, SystemError } from "@nodeyard/connect";
import type { Clock } from "@nodeyard/runtime";
import { z } from "zod";

const id = z.int();
/** Of a job: what is read of it (Gitea's swagger, ActionWorkflowJob). */
const jobSchema = z.object({
  id,
  run_id: id,
  name: z.string(),
  html_url: z.string().nullish(),
  labels: z.array(z.string()).nullish(),
  runner_id: id.optional(),
  runner_name: z.string().optional(),
});
export type GiteaJob = z.output<typeof jobSchema>;

const endedSchema = z.object({ conclusion: z.string().nullish() });
const runnerSchema = z.object({ id, name: z.string(), busy: z.boolean() });
export type GiteaRunner = z.output<typeof runnerSchema>;
const jobsSchema = z.object({ jobs: z.array(jobSchema).nullable(), total_count: z.int() });
const runnersSchema = z.object({ runners: z.array(runnerSchema).nullable(), total_count: z.int() });
/** Numbers of 64 bits are texts in the JSON of protobuf. */
const registered = z.object({
  runner: z.object({ id: z.union([z.int(), z.string()]), uuid: z.string(), token: z.string() }),
});

/** What a runner is told of itself. */
export type Registered = z.output<typeof registered>["runner"];

const PAGE = 50;
/** Protocol of runners, as act_runner speaks it (code.gitea.io/actions-proto-go, runner.v1). */
const REGISTER = "/api/actions/runner.v1.RunnerService/Register";

/** The calls of Gitea 1.26 and later, the first that disables runners, that a connector needs. Each rejects with SystemError. */
export class GiteaApi {
  readonly #clock: Clock;
  readonly #url: string;
  readonly #actions: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(clock: Clock, url: string, scope: string, token: string) {
    this.#clock = clock;
    this.#url = url;
    const owner = scope.includes("/") ? `repos/${scope}` : `orgs/${scope}`;
    this.#actions = `${url}/api/v1/${scope === "instance" ? "admin" : owner}/actions`;
    this.#headers = { authorization: `token ${token}` };
  }

  /** All jobs that wait for a runner, or that one works on. */
  jobs(status: "queued" | "in_progress"): Promise<readonly GiteaJob[]> {
    return this.#all(`jobs?status=${status}`, async (url) => {
      const { jobs, total_count } = await this.#get(url, jobsSchema);
      return [jobs ?? [], total_count];
    });
  }

  /**
   * The job that a runner had, of those that were made last; undefined: none of these. The list has all jobs that there ever were, in the order
   * of the database, which is mostly that of their making.
   */
  async jobOf(runner: string): Promise<GiteaJob | undefined> {
    const read = (page: number) => this.#get(`${this.#actions}/jobs?limit=${PAGE}&page=${page}`, jobsSchema);
    const first = await read(1);
    const last = Math.max(1, Math.ceil(first.total_count / PAGE));
    for (const page of last > 1 ? [last, last - 1] : [1]) {
      const { jobs } = page === 1 ? first : await read(page);
      const found = jobs?.find(({ runner_name }) => runner_name === runner);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  runners(): Promise<readonly GiteaRunner[]> {
    return this.#all("runners?", async (url) => {
      const { runners, total_count } = await this.#get(url, runnersSchema);
      return [runners ?? [], total_count];
    });
  }

  /** Whether a job has succeeded. Only its repository answers for one job, whose name is in the address of its page. */
  async succeeded(job: string, page: string | null): Promise<boolean> {
    const repository = /\/([^/]+\/[^/]+)\/actions\/runs\//.exec(page ?? "")?.[1];
    if (repository === undefined) return false;
    const url = `${this.#url}/api/v1/repos/${repository}/actions/jobs/${job}`;
    return (await this.#get(url, endedSchema)).conclusion === "success";
  }

  /** Whether a runner has told of a job a moment ago; one that is gone does not. */
  async works(runner: number): Promise<boolean> {
    const call = {
      method: "GET",
      url: `${this.#actions}/runners/${runner}`,
      headers: this.#headers,
    } as const;
    const answer = await httpCall(this.#clock, call);
    const { success, data } = runnerSchema.safeParse(answer.json);
    if (answer.status === 404) return false;
    if (answer.status >= 300 || !success) throw refusal(call, answer);
    return data.busy;
  }

  /** Registers a runner for one job. */
  async register(name: string, labels: readonly string[]): Promise<Registered> {
    const asked = {
      method: "POST",
      url: `${this.#actions}/runners/registration-token`,
      headers: this.#headers,
    } as const;
    const { token } = await this.#send(asked, z.object({ token: z.string() }));
    const body = { name, token, version: "nodeyard", labels, ephemeral: true };
    return (await this.#send({ method: "POST", url: this.#url + REGISTER, body }, registered)).runner;
  }

  /** A runner that is disabled gets no new job. One that is gone is no error. */
  async disable(runner: number, disabled: boolean): Promise<void> {
    await this.#change({ method: "PATCH", url: `${this.#actions}/runners/${runner}`, body: { disabled } });
  }

  async delete(runner: number): Promise<void> {
    await this.#change({ method: "DELETE", url: `${this.#actions}/runners/${runner}` });
  }

  async #change(call: HttpCall): Promise<void> {
    const answer = await httpCall(this.#clock, { ...call, headers: this.#headers });
    if (answer.status >= 300 && answer.status !== 404) throw refusal(call, answer);
  }

  async #all<T>(
    path: string,
    page: (url: string) => Promise<readonly [readonly T[], number]>,
  ): Promise<readonly T[]> {
    const found: T[] = [];
    for (let number = 1; ; number++) {
      const [items, total] = await page(`${this.#actions}/${path}&limit=${PAGE}&page=${number}`);
      found.push(...items);
      if (items.length === 0 || found.length >= total) return found;
    }
  }

  #get<T>(url: string, schema: z.ZodType<T>): Promise<T> {
    return this.#send({ method: "GET", url, headers: this.#headers }, schema);
  }

  async #send<T>(call: HttpCall, schema: z.ZodType<T>): Promise<T> {
    const answer = await httpCall(this.#clock, call);
    if (answer.status >= 300) throw refusal(call, answer);
    const { success, data, error } = schema.safeParse(answer.json);
    if (success) return data;
    throw new SystemError(
      `${call.method} ${call.url} answered what no known Gitea does: ${z.prettifyError(error)}`,
    );
  }
}
