import { createHmac } from "node:crypto";

/** A build as Zuul's web server lists it. */
export interface Build {
  readonly uuid: string;
  readonly job_name: string;
  readonly result: string | null;
  readonly pipeline: string;
  readonly start_time: string | null;
  readonly ref: { readonly project: string; readonly ref: string };
}

export interface Autohold {
  readonly id: string;
  readonly current_count: number;
  readonly nodes: readonly { readonly build: string; readonly nodes: readonly string[] }[];
}

/** Zuul's REST, as `zuul-client` uses it. */
export class ZuulApi {
  readonly #base: string;
  readonly #token: string;

  constructor(port: number, secret: string) {
    this.#base = `http://127.0.0.1:${port}/api`;
    this.#token = token(secret);
  }

  async call<T>(method: string, path: string, body?: object): Promise<T> {
    const reply = await fetch(this.#base + path, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text.slice(0, 300)}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  enqueue(project: string, tag: string, pipeline: string): Promise<unknown> {
    const revisions = { oldrev: "0".repeat(40), newrev: null };
    return this.call("POST", `/tenant/t1/project/${project}/enqueue`, {
      pipeline,
      ref: `refs/tags/${tag}`,
      ...revisions,
    });
  }

  dequeue(project: string, tag: string, pipeline: string): Promise<unknown> {
    return this.call("POST", `/tenant/t1/project/${project}/dequeue`, { pipeline, ref: `refs/tags/${tag}` });
  }

  /** The build of this tag in this pipeline, once it has ended. */
  async ended(project: string, tag: string, pipeline: string): Promise<Build | undefined> {
    const builds = await this.call<readonly Build[]>("GET", `/tenant/t1/builds?pipeline=${pipeline}`);
    return builds.find(
      ({ ref, result }) => result !== null && ref.project === project && ref.ref === `refs/tags/${tag}`,
    );
  }

  hold(project: string, job: string, reason: string, seconds: number): Promise<unknown> {
    return this.call("POST", `/tenant/t1/project/${project}/autohold`, {
      job,
      reason,
      count: 1,
      node_hold_expiration: seconds,
    });
  }

  holds(): Promise<readonly Autohold[]> {
    return this.call("GET", "/tenant/t1/autohold");
  }
}

/** A JSON web token of an operator, as `zuul-admin create-auth-token` makes it. */
function token(secret: string): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: "operator", aud: "zuul.example.org", sub: "ann", iat: now - 60, exp: now + 86_400 };
  const [head, body] = [
    { alg: "HS256", typ: "JWT" },
    { ...claims, zuul: { admin: ["t1"] } },
  ].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
  return `${head}.${body}.${createHmac("sha256", secret).update(`${head}.${body}`).digest("base64url")}`;
}
