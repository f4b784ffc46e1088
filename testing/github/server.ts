import { createVerify, generateKeyPairSync, randomUUID } from "node:crypto";
import { type Answer, type Arrived, Dropped, listen } from "../double-server.ts";
import { type Agent, ScaleSet } from "./jobs.ts";

/** What can go wrong, each for the next so many calls that it can happen to. */
export interface Faults {
  /** 500 instead of an answer, before anything is done. */
  internal: number;
  /** The message is acknowledged, and the answer is lost. */
  lostAcknowledgments: number;
  /** The token of the queue has ended. */
  expired: number;
  /** A message comes once more after it was acknowledged. */
  duplicates: number;
}

/** How long the queue waits for a message; GitHub's takes 50 s. */
const WAIT_MS = 2_000;
const PAT = "ghp_0123456789abcdef";
/** An App with one installation. */
export const APP = { clientId: "Iv1.0123456789abcdef", installation: 7 };
const INSTALLATION_TOKEN = "ghs_0123456789abcdef";
/** Of the admin token, so short that clients have to renew it. */
const ADMIN_SECONDS = 90;

type Json = Readonly<Record<string, unknown>>;

class Refusal extends Error {
  readonly status: number;
  readonly typeName: string;
  constructor(status: number, typeName = "", message = typeName) {
    super(message);
    this.status = status;
    this.typeName = typeName;
  }
}

/**
 * GitHub's service for runner scale sets, as its client speaks with it (https://github.com/actions/scaleset), and a door for the runners of
 * tests at `/_runner/`, whose real protocol is not played.
 */
export class GitHub {
  readonly sets: ScaleSet[] = [];
  readonly faults: Faults = { internal: 0, lostAcknowledgments: 0, expired: 0, duplicates: 0 };
  readonly token = PAT;
  readonly #app = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  /** The private key of the App, in PEM. */
  readonly appKey = this.#app.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  /** Method and path of each call. */
  readonly calls: string[] = [];
  #adminTokens = new Set<string>();
  #agents = 0;
  #server: Awaited<ReturnType<typeof listen>> | undefined;

  static async start(): Promise<GitHub> {
    const github = new GitHub();
    github.#server = await listen(github);
    return github;
  }

  get url(): string {
    return this.#server!.url;
  }

  /** The scale set of this name; undefined: nobody has made it yet. */
  set(name: string): ScaleSet | undefined {
    return this.sets.find((one) => one.name === name);
  }

  /** Admin tokens are good no more. */
  expireAdmin(): void {
    this.#adminTokens = new Set();
  }

  async stop(): Promise<void> {
    await this.#server?.close();
  }

  async answer(arrived: Arrived): Promise<Answer> {
    const url = new URL(arrived.url, this.url);
    this.calls.push(`${arrived.method} ${url.pathname}`);
    const headers = { "content-type": "application/json" };
    try {
      if (this.faults.internal > 0 && !url.pathname.startsWith("/_runner/")) {
        this.faults.internal--;
        throw new Refusal(500, "", "internal error");
      }
      const sent = Buffer.from(arrived.body).toString();
      const { status, body } = await this.#route(arrived, url, sent === "" ? undefined : JSON.parse(sent));
      // As the real one does at times.
      return { status, headers, text: body === undefined ? "" : `\ufeff${JSON.stringify(body)}` };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { status, typeName, message } = error;
      return { status, headers, text: JSON.stringify({ typeName, message }) };
    }
  }

  async #route(
    { method, headers }: Arrived,
    url: URL,
    body: unknown,
  ): Promise<{ status: number; body?: unknown }> {
    const { pathname } = url;
    const authorization = headers.authorization ?? "";
    const is = (verb: string, pattern: RegExp) =>
      method === verb ? (pattern.exec(pathname) ?? undefined) : undefined;
    if (is("POST", /^\/api\/v3\/(orgs\/org|repos\/org\/repo)\/actions\/runners\/registration-token$/)) {
      if (![`Bearer ${PAT}`, `Bearer ${INSTALLATION_TOKEN}`].includes(authorization))
        throw new Refusal(401, "", "bad credentials");
      return {
        status: 201,
        body: { token: "registration", expires_at: new Date(Date.now() + 3_600_000).toISOString() },
      };
    }
    if (is("POST", /^\/api\/v3\/app\/installations\/7\/access_tokens$/)) {
      if (!this.#isApp(authorization.replace("Bearer ", ""))) throw new Refusal(401, "", "bad credentials");
      return { status: 201, body: { token: INSTALLATION_TOKEN } };
    }
    if (is("POST", /^\/api\/v3\/actions\/runner-registration$/)) {
      if (authorization !== "RemoteAuth registration") throw new Refusal(401, "", "bad credentials");
      const claims = { exp: Math.floor(Date.now() / 1_000) + ADMIN_SECONDS, jti: randomUUID() };
      const token = [{ alg: "RS256", typ: "JWT" }, claims, "not signed"]
        .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
        .join(".");
      this.#adminTokens.add(token);
      return { status: 200, body: { url: `${this.url}/tenant/`, token } };
    }
    const runner = is("POST", /^\/_runner\/(\d+)\/(next|end)$/);
    if (runner !== undefined) return this.#runner(Number(runner[1]), runner[2]!, body as Json);
    const queue = /^\/tenant\/queue\/(\d+)(?:\/(\d+))?$/.exec(pathname);
    if (queue !== null) return this.#queue(method, this.#byId(queue[1]!), queue[2], url, headers);
    if (!pathname.startsWith("/tenant/_apis/")) throw new Refusal(404);
    if (url.searchParams.get("api-version") !== "6.0-preview") throw new Refusal(400, "", "api-version");
    const path = pathname.slice("/tenant/_apis/".length);
    const acquire = /^runtime\/runnerscalesets\/(\d+)\/acquirejobs$/.exec(path);
    if (acquire !== null) {
      const set = this.#byId(acquire[1]!);
      if (authorization !== `Bearer ${set.session?.queueToken}`) throw new Refusal(401);
      const value = set.acquire(body as number[]);
      return { status: 200, body: { count: value.length, value } };
    }
    if (!this.#adminTokens.has(authorization.replace("Bearer ", ""))) throw new Refusal(401);
    return this.#admin(method, path, url, body as Json);
  }

  #admin(method: string, path: string, url: URL, body: Json): { status: number; body?: unknown } {
    if (method === "GET" && path === "runtime/runnergroups/") {
      const name = url.searchParams.get("groupName");
      return {
        status: 200,
        body:
          name === "default"
            ? { count: 1, value: [{ id: 1, name, size: 0, isDefaultGroup: true }] }
            : { count: 0, value: [] },
      };
    }
    if (path === "runtime/runnerscalesets") {
      if (method === "POST") {
        const { name, labels } = body as { name: string; labels: { name: string }[] };
        if (this.set(name) !== undefined) throw new Refusal(409, "RunnerScaleSetExistsException");
        const set = new ScaleSet(
          this.sets.length + 1,
          name,
          labels.map((one) => one.name),
        );
        this.sets.push(set);
        return { status: 200, body: shown(set) };
      }
      const value = this.sets.filter(({ name }) => name === url.searchParams.get("name")).map(shown);
      return { status: 200, body: { count: value.length, value } };
    }
    const of = /^runtime\/runnerscalesets\/(\d+)(?:\/(sessions|generatejitconfig)(?:\/([0-9a-f-]+))?)?$/.exec(
      path,
    );
    if (of !== null) return this.#ofSet(method, this.#byId(of[1]!), of[2], of[3], body);
    const agent = /^distributedtask\/pools\/0\/agents(?:\/(\d+))?$/.exec(path);
    if (agent !== null) return this.#agent(method, agent[1], url.searchParams.get("agentName"));
    throw new Refusal(404);
  }

  #ofSet(method: string, set: ScaleSet, what: string | undefined, session: string | undefined, body: Json) {
    if (what === undefined) return method === "GET" ? { status: 200, body: shown(set) } : { status: 204 };
    if (what === "generatejitconfig") {
      const name = String(body.name);
      if ([...set.agents.values()].some((one) => one.name === name))
        throw new Refusal(409, "AgentExistsException");
      const agent: Agent = { id: ++this.#agents, name, secret: randomUUID(), isOnline: false };
      set.agents.set(agent.id, agent);
      const config = Buffer.from(
        JSON.stringify({ url: `${this.url}/_runner/${agent.id}`, secret: agent.secret }),
      ).toString("base64");
      return {
        status: 200,
        body: { runner: { id: agent.id, name, runnerScaleSetId: set.id }, encodedJITConfig: config },
      };
    }
    if (method === "POST") {
      if (set.session !== undefined) throw new Refusal(409, "RunnerScaleSetSessionConflictException");
      set.session = { id: randomUUID(), queueToken: randomUUID() };
      return { status: 200, body: this.#session(set, String(body.ownerName)) };
    }
    if (set.session?.id !== session) throw new Refusal(404, "RunnerScaleSetSessionNotFoundException");
    if (method === "PATCH") {
      set.session!.queueToken = randomUUID();
      return { status: 200, body: this.#session(set, "") };
    }
    set.session = undefined;
    return { status: 204 };
  }

  #session(set: ScaleSet, ownerName: string) {
    const { id, queueToken } = set.session!;
    return {
      sessionId: id,
      ownerName,
      runnerScaleSet: shown(set),
      messageQueueUrl: `${this.url}/tenant/queue/${set.id}?session=${id}`,
      messageQueueAccessToken: queueToken,
      statistics: set.statistics,
    };
  }

  async #queue(
    method: string,
    set: ScaleSet,
    message: string | undefined,
    url: URL,
    headers: Arrived["headers"],
  ) {
    if (this.faults.expired > 0 && set.session !== undefined) {
      this.faults.expired--;
      set.session.queueToken = randomUUID();
    }
    if (headers.authorization !== `Bearer ${set.session?.queueToken}`) throw new Refusal(401);
    if (method === "DELETE") {
      const at = set.queue.findIndex(({ id }) => id === Number(message));
      if (this.faults.duplicates > 0) this.faults.duplicates--;
      else if (at >= 0) set.queue.splice(at, 1);
      if (this.faults.lostAcknowledgments > 0) {
        this.faults.lostAcknowledgments--;
        throw new Dropped();
      }
      return { status: 204 };
    }
    set.capacities.push(Number(headers["x-scalesetmaxcapacity"]));
    const next = await set.next(Number(url.searchParams.get("lastMessageId") ?? 0), WAIT_MS);
    if (next === undefined) return { status: 202 };
    const { id: messageId, body } = next;
    return {
      status: 200,
      body: {
        messageId,
        messageType: "RunnerScaleSetJobMessages",
        body: JSON.stringify(body),
        statistics: set.statistics,
      },
    };
  }

  #agent(method: string, id: string | null | undefined, name: string | null) {
    const all = this.sets.flatMap((set) => [...set.agents.values()].map((agent) => ({ set, agent })));
    if (id == null) {
      const value = all
        .filter(({ agent }) => agent.name === name)
        .map(({ agent, set }) => ({ id: agent.id, name, runnerScaleSetId: set.id }));
      return { status: 200, body: { count: value.length, value } };
    }
    const found = all.find(({ agent }) => agent.id === Number(id));
    if (found === undefined) throw new Refusal(404, "AgentNotFoundException");
    if (method === "GET")
      return {
        status: 200,
        body: { id: found.agent.id, name: found.agent.name, runnerScaleSetId: found.set.id },
      };
    if (found.agent.job !== undefined) throw new Refusal(400, "JobStillRunningException");
    found.set.agents.delete(found.agent.id);
    return { status: 204 };
  }

  /** The runners of tests: `next` gives the line of the job, `end` takes its result. */
  #runner(id: number, what: string, { secret, result }: Json) {
    const set = this.sets.find(({ agents }) => agents.has(id));
    const agent = set?.agents.get(id);
    if (set === undefined || agent === undefined || agent.secret !== secret)
      throw new Refusal(404, "AgentNotFoundException");
    if (what === "next") return { status: 200, body: { line: set.start(agent)?.line ?? null } };
    set.end(agent, String(result));
    return { status: 204 };
  }

  /** Whether the App signed this token, for ten minutes at most (docs.github.com, "Generating a JSON Web Token for a GitHub App"). */
  #isApp(token: string): boolean {
    const [header = "", claims = "", signature = ""] = token.split(".");
    const { iss, iat, exp } = JSON.parse(Buffer.from(claims, "base64url").toString()) as Record<
      string,
      unknown
    >;
    const now = Date.now() / 1_000;
    const isTimely = Number(iat) <= now && Number(exp) > now && Number(exp) <= now + 600;
    const verify = createVerify("RSA-SHA256").update(`${header}.${claims}`);
    return iss === APP.clientId && isTimely && verify.verify(this.#app.publicKey, signature, "base64url");
  }

  #byId(id: string): ScaleSet {
    const set = this.sets.find((one) => one.id === Number(id));
    if (set === undefined) throw new Refusal(404, "RunnerScaleSetNotFoundException");
    return set;
  }
}

function shown({ id, name, labels, statistics }: ScaleSet) {
  return {
    id,
    name,
    runnerGroupId: 1,
    runnerGroupName: "default",
    labels: labels.map((label) => ({ type: "System", name: label })),
    statistics,
  };
}
