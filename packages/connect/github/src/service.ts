import { type HttpAnswer, type HttpCall, httpCall, refusal } from "@nodeyard/connect";
import { type Clock, keepSecret } from "@nodeyard/runtime";
import { z } from "zod";
import type { SignIn } from "./sign-in.ts";

const id = z.int();
const statistics = z.looseObject({ totalAssignedJobs: z.int() });
const scaleSet = z.object({ id });
const session = z.object({
  sessionId: z.string(),
  messageQueueUrl: z.string(),
  messageQueueAccessToken: z.string(),
  statistics,
});
/** A session with the queue of a scale set, of which there is one at a time. */
export type Session = z.output<typeof session> & { readonly set: number };

const message = z.object({
  messageId: z.int(),
  messageType: z.string(),
  body: z.string().default(""),
  statistics,
});
const job = z.object({
  messageType: z.string(),
  runnerRequestId: z.number(),
  jobId: z.string().default(""),
  jobDisplayName: z.string().default(""),
  ownerName: z.string().default(""),
  repositoryName: z.string().default(""),
  workflowRunId: z.number().default(0),
  runnerName: z.string().default(""),
  result: z.string().default(""),
});
/** What a message says of one job. */
export type JobMessage = z.output<typeof job>;
/** What has happened to jobs since the message before. */
export interface QueueMessage {
  readonly id: number;
  readonly assigned: number;
  readonly jobs: readonly JobMessage[];
}

const groups = z.object({ value: z.array(z.object({ id, name: z.string() })) });
const sets = z.object({ value: z.array(scaleSet) });
const agents = z.object({ value: z.array(z.object({ id })) });
const jit = z.object({ encodedJITConfig: z.string() });
const nothing = z.unknown();

const SETS = "_apis/runtime/runnerscalesets";
const AGENTS = "_apis/distributedtask/pools/0/agents";
/** The queue answers after 50 s that there is nothing. */
const POLL_MS = 90_000;
const VERSION = "api-version=6.0-preview";
/** GitHub asks clients of its preview to say who they are in this form. */
const AGENT = JSON.stringify({
  system: "nodeyard",
  version: "0.1.0",
  subsystem: "connect",
  kind: "scaleset",
});

/** The part of GitHub's service for runner scale sets that a connector needs. Each call rejects with SystemError. */
export class ScaleSetService {
  readonly #clock: Clock;
  readonly #signIn: SignIn;

  constructor(clock: Clock, signIn: SignIn) {
    this.#clock = clock;
    this.#signIn = signIn;
  }

  /** The scale set of this name, made if it is not there. */
  async scaleSet(name: string, group: string, labels: readonly string[]): Promise<number> {
    const query = `groupName=${encodeURIComponent(group)}`;
    const found = await this.#call("GET", `_apis/runtime/runnergroups/?${query}`, undefined, groups);
    const runnerGroupId = found.value[0]?.id;
    if (runnerGroupId === undefined) throw new Error(`there is no runner group ${group}`);
    const path = `${SETS}?runnerGroupId=${runnerGroupId}&name=${encodeURIComponent(name)}`;
    const [known] = (await this.#call("GET", path, undefined, sets)).value;
    if (known !== undefined) return known.id;
    const wanted = {
      name,
      runnerGroupId,
      labels: labels.map((label) => ({ type: "System", name: label })),
      RunnerSetting: { disableUpdate: true },
    };
    return (await this.#call("POST", SETS, wanted, scaleSet)).id;
  }

  /** Undefined: another session is open. */
  async open(set: number, owner: string): Promise<Session | undefined> {
    const answer = await this.#answer("POST", `${SETS}/${set}/sessions`, { ownerName: owner });
    if (answer.status === 409) return undefined;
    return this.#secret(set, this.#read(answer, session));
  }

  async renew(set: number, { sessionId }: Session): Promise<Session> {
    return this.#secret(
      set,
      await this.#call("PATCH", `${SETS}/${set}/sessions/${sessionId}`, undefined, session),
    );
  }

  /** One that is not open any more is closed. */
  async close({ set, sessionId }: Session): Promise<void> {
    const answer = await this.#answer("DELETE", `${SETS}/${set}/sessions/${sessionId}`, undefined);
    if (answer.status !== 404) this.#read(answer, nothing);
  }

  /** The next message; undefined: there was none for a while. "expired": the session has to be renewed. */
  async next(
    { messageQueueUrl, messageQueueAccessToken: token }: Session,
    last: number,
    capacity: number,
    signal: AbortSignal,
  ): Promise<QueueMessage | "expired" | undefined> {
    const url = new URL(messageQueueUrl);
    if (last > 0) url.searchParams.set("lastMessageId", String(last));
    const headers = { ...this.#headers(token), "x-scalesetmaxcapacity": String(capacity) };
    const call = { method: "GET", url: url.href, headers, timeoutMs: POLL_MS, signal } as const;
    const answer = await httpCall(this.#clock, call);
    if (answer.status === 401) return "expired";
    if (answer.status === 202) return undefined;
    const { messageId, body, statistics } = this.#read({ call, ...answer }, message);
    return { id: messageId, assigned: statistics.totalAssignedJobs, jobs: jobsIn(body) };
  }

  /** Says that a message was dealt with; otherwise it comes again. */
  async acknowledge(
    { messageQueueUrl, messageQueueAccessToken: token }: Session,
    message: number,
  ): Promise<void> {
    const url = new URL(messageQueueUrl);
    url.pathname += `/${message}`;
    const call = { method: "DELETE", url: url.href, headers: this.#headers(token) } as const;
    const answer = await httpCall(this.#clock, call);
    // One that it does not know any more was acknowledged before.
    if (answer.status >= 300 && answer.status !== 404) throw refusal(call, answer);
  }

  /** Takes jobs that are offered; those that another set has taken are left out. False: it was refused for good. */
  async acquire(
    set: number,
    { messageQueueAccessToken: token }: Session,
    requests: readonly number[],
  ): Promise<boolean> {
    const { url } = await this.#signIn.service();
    const call = {
      method: "POST",
      url: `${url}/${SETS}/${set}/acquirejobs?${VERSION}`,
      headers: this.#headers(token),
      body: requests,
    } as const;
    const answer = await httpCall(this.#clock, call);
    if (answer.status === 401 || answer.status >= 500) throw refusal(call, answer);
    return answer.status < 300;
  }

  /** Registers a runner for one job; its configuration is a secret until it is used. Undefined: there is one of this name. */
  async register(set: number, name: string): Promise<string | undefined> {
    const answer = await this.#answer("POST", `${SETS}/${set}/generatejitconfig`, {
      name,
      workFolder: "_work",
    });
    if (typeOf(answer).includes("AgentExistsException")) return undefined;
    const { encodedJITConfig: config } = this.#read(answer, jit);
    keepSecret(config);
    return config;
  }

  /** Removes the runner of this name; one that is not there is removed. */
  async remove(name: string): Promise<"removed" | "busy"> {
    const found = await this.#call(
      "GET",
      `${AGENTS}?agentName=${encodeURIComponent(name)}`,
      undefined,
      agents,
    );
    for (const { id } of found.value) {
      const answer = await this.#answer("DELETE", `${AGENTS}/${id}`, undefined);
      if (typeOf(answer).includes("JobStillRunningException")) return "busy";
      if (!typeOf(answer).includes("AgentNotFoundException")) this.#read(answer, nothing);
    }
    return "removed";
  }

  async #call<T>(method: HttpCall["method"], path: string, body: unknown, schema: z.ZodType<T>): Promise<T> {
    return this.#read(await this.#answer(method, path, body), schema);
  }

  /** With the token of the account, which is asked for again once when it is refused. */
  async #answer(
    method: HttpCall["method"],
    path: string,
    body: unknown,
  ): Promise<HttpAnswer & { readonly call: HttpCall }> {
    for (let attempt = 0; ; attempt++) {
      const { url, token } = await this.#signIn.service();
      const call = {
        method,
        url: `${url}/${path}${path.includes("?") ? "&" : "?"}${VERSION}`,
        headers: this.#headers(token),
        body,
      };
      const answer = await httpCall(this.#clock, call);
      if (answer.status !== 401 || attempt > 0) return { ...answer, call };
      this.#signIn.forget(token);
    }
  }

  #read<T>({ call, ...answer }: HttpAnswer & { readonly call: HttpCall }, schema: z.ZodType<T>): T {
    const { success, data } = schema.safeParse(answer.json);
    if (answer.status >= 300 || !success) throw refusal(call, answer);
    return data;
  }

  #headers(token: string) {
    return {
      authorization: `Bearer ${token}`,
      accept: "application/json; api-version=6.0-preview",
      "user-agent": AGENT,
    };
  }

  #secret(set: number, one: z.output<typeof session>): Session {
    keepSecret(one.messageQueueAccessToken);
    return { ...one, set };
  }
}

/** The kind of error that the service names; empty: it names none. */
function typeOf({ json }: HttpAnswer): string {
  const { typeName } = (json ?? {}) as { readonly typeName?: unknown };
  return typeof typeName === "string" ? typeName : "";
}

/** Of a message. One in a form that is not known says nothing here: how many runners are wanted does not come from it. */
function jobsIn(body: string): readonly JobMessage[] {
  try {
    return z.array(job).parse(JSON.parse(body));
  } catch {
    return [];
  }
}
