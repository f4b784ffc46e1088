import {
  allPages,
  answeredJson,
  type BearerToken,
  bearerRequest,
  bucketAt,
  callText,
  DriverError,
  defined,
  type FailedTry,
  type HttpAnswer,
  OddAnswer,
  type Random,
  type RequestParts,
  Session,
  type SessionHost,
  safely,
  sleep,
  type Unsent,
} from "@nodeyard/driver";
import { faultOf, isRate, type OperationFault, unlessMissing } from "../errors.ts";

/** What a session with Google Cloud consists of. */
export interface GoogleOptions extends SessionHost {
  /** Signs in anew. Rejects with CloudConfigError or NoAnswer. */
  readonly logIn: () => Promise<BearerToken>;
  readonly project: string;
  /** Address in place of Google's own; null: none. */
  readonly endpoint: string | null;
}

/** A call, beneath the project for Compute Engine. */
export interface GoogleCall extends RequestParts {
  readonly method: Unsent["method"];
  readonly path: string;
  /** As in `HttpCall`. */
  readonly tryMs?: number;
}

/** An operation of Compute Engine: what a call that writes answers with, long before it has ended. */
export interface Operation {
  readonly name: string;
  readonly status: "PENDING" | "RUNNING" | "DONE";
  readonly zone?: string;
  readonly error?: { readonly errors?: readonly OperationFault[] };
}

/** A page of a list: its items, or those of each scope of an aggregated list. */
interface Page {
  readonly items?: readonly unknown[] | Readonly<Record<string, Scope>>;
  readonly nextPageToken?: string;
  readonly unreachables?: readonly string[];
}
type Scope = Readonly<Record<string, unknown>> & { readonly warning?: { readonly code?: string } };

/** Items of a page: the API's most. */
const PAGE = 500;
/** The API answers a wait after two minutes at the latest, and under load at once, after which comes a pause. */
const WAIT_MS = 150_000;
const AGAIN_MS = 1_000;
/** Quotas of calls are full again when a minute begins, by a clock that may differ from ours by this much, milliseconds. */
const MINUTE_MS = 60_000;
const SKEW_MS = 1_000;

/** One credential at Google Cloud. Every call may be repeated: what makes something carries an id, by which Google knows it for an hour. */
export class Google extends Session<BearerToken> {
  readonly #options: GoogleOptions;

  constructor(options: GoogleOptions) {
    const { clock, random, logIn: signIn } = options;
    super({
      ...{ ...options, by: "Google Cloud", signIn, fault: faultOf, endOf: ({ end }) => end },
      again: (limiter) => {
        const again = safely(clock, random, limiter, () => true);
        return (failed) => again(untilMinute(failed, clock.now(), random));
      },
    });
    this.#options = options;
  }

  get project(): string {
    return this.#options.project;
  }

  /** Calls Compute Engine, by a path beneath the project. An answer says by its `kind` that it is Google's. */
  compute<T>({ method, path, tryMs, ...parts }: GoogleCall, signal: AbortSignal): Promise<T> {
    const url = `${this.#at("compute")}/compute/v1/projects/${this.project}${path}`;
    const request = ({ text }: BearerToken) => bearerRequest(method, url, text, parts);
    const call = { operation: operationOf(method, path), signal, request, ...defined({ tryMs }) };
    return this.calls.call(call, read<T>);
  }

  /** A bucket of Cloud Storage, by its XML API. */
  bucket(name: string) {
    return bucketAt(this.calls, `${this.#at("storage")}/${name}`);
  }

  #at(service: "compute" | "storage"): string {
    return (this.#options.endpoint ?? `https://${service}.googleapis.com`).replace(/\/$/, "");
  }

  /**
   * All items of a list of Compute Engine; of an aggregated one those under `key` of each zone. Rejects when Google says that zones are
   * missing: what is in them would be taken for gone.
   */
  async list<T>(path: string, signal: AbortSignal, { key = "", filter = "" } = {}): Promise<readonly T[]> {
    const asked = { maxResults: PAGE, ...(filter && { filter }) };
    const pages = await allPages(
      `list of ${path}`,
      (pageToken) => {
        const query = { ...asked, ...defined({ pageToken }) };
        return this.compute<Page>({ method: "GET", path, query }, signal);
      },
      ({ nextPageToken }) => nextPageToken,
    );
    return pages.flatMap(({ items = [], unreachables = [] }) => {
      if (Array.isArray(items)) return items;
      const scopes = Object.entries(items as Readonly<Record<string, Scope>>);
      const missing = scopes.flatMap(([zone, { warning }]) => (warning?.code === "UNREACHABLE" ? zone : []));
      const unseen = [...missing, ...unreachables].join(", ");
      if (unseen !== "")
        throw new DriverError("transient", `the list ${path} lacks what cannot be reached: ${unseen}`);
      return scopes.flatMap(([, scope]) => (scope[key] as readonly T[] | undefined) ?? []);
    });
  }

  /** An operation when it is done, with its error if it has one. */
  async ended({ name, zone, ...operation }: Operation, signal: AbortSignal): Promise<Operation> {
    let now: Operation = { name, ...operation };
    const scope = zone === undefined ? "global" : `zones/${zone.split("/").at(-1)}`;
    const call = { method: "POST", path: `/${scope}/operations/${name}/wait`, tryMs: WAIT_MS } as const;
    for (let tries = 0; now.status !== "DONE"; tries++) {
      const { clock, random } = this.#options;
      if (tries > 0) await sleep(clock, AGAIN_MS * (1 + random.float()), signal);
      now = await this.compute<Operation>(call, signal);
    }
    return now;
  }

  /** As `compute`; undefined: there is none. Paths may go on after the name. */
  maybe<T>(call: GoogleCall, signal: AbortSignal): Promise<T | undefined> {
    const [name = call.path] = /^\/(zones\/[^/]+|global)\/\w+\/[^/]+/.exec(call.path) ?? [];
    return unlessMissing(this.compute<T>(call, signal), `${name}'`);
  }
}

/** A full quota of calls as a refusal until the next minute. */
function untilMinute(failed: FailedTry, now: number, random: Random): FailedTry {
  const { failure, answer } = failed;
  if (answer === undefined || !isRate(failure)) return failed;
  const next = MINUTE_MS - (now % MINUTE_MS) + SKEW_MS * random.float();
  const headers = { "retry-after": String(Math.min(next, MINUTE_MS) / 1_000) };
  return { ...failed, answer: { ...answer, status: 429, headers } };
}

function read<T>(answer: HttpAnswer, request: Unsent): T {
  const body = answeredJson<{ readonly kind?: unknown }>(answer, request);
  // A page of something in between, or a list of nothing, would look like an empty cloud.
  if (String(body.kind).startsWith("compute#")) return body as T;
  throw new OddAnswer(`${callText(request)}: the answer ${answer.status} is not Google's`);
}

/** Without ids: `compute.POST.zones.instances`. */
function operationOf(method: string, path: string): string {
  const [, scope = "", ...rest] = path.split("/");
  const type = rest[/^(zones|regions)$/.test(scope) ? 1 : 0];
  return ["compute", method, scope, type].filter(Boolean).join(".");
}
