import {
  ApiError,
  allPages,
  answeredJson,
  type BearerToken,
  bearerRequest,
  callText,
  DriverError,
  defined,
  type FailedTry,
  type HttpAnswer,
  OddAnswer,
  pageText,
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

/**
 * One credential at Google Cloud. Every call may be repeated: those that make something carry an id of their request, by which Google knows
 * them for an hour.
 */
export class Google extends Session<BearerToken> {
  readonly #options: GoogleOptions;

  constructor(options: GoogleOptions) {
    const { clock, random, logIn: signIn } = options;
    super({
      ...{ ...options, by: "Google Cloud", signIn, endOf: ({ end }) => end },
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

  /** Calls Compute Engine, by a path beneath the project. */
  compute<T>(call: GoogleCall, signal: AbortSignal): Promise<T> {
    const path = `/compute/v1/projects/${this.project}${call.path}`;
    return this.send<T>("https://compute.googleapis.com", { ...call, path }, signal);
  }

  /** Calls Cloud Storage. Undefined: the answer has no body. */
  storage<T>(call: GoogleCall, signal: AbortSignal): Promise<T> {
    return this.send<T>("https://storage.googleapis.com", call, signal);
  }

  /** The body of an answer below 400, which says by its `kind` that it is Google's. */
  async send<T>(host: string, call: GoogleCall, signal: AbortSignal): Promise<T> {
    return (await this.raw(`${this.address(host)}${call.path}`, call, signal)).answer as T;
  }

  /** The same for a whole address, with the answer's headers. */
  raw(url: string, { method, path, tryMs, ...parts }: GoogleCall, signal: AbortSignal) {
    const operation = operationOf(method, path);
    const request = ({ text }: BearerToken) => bearerRequest(method, url, text, parts);
    return this.calls.call({ ...{ operation, signal, request }, ...defined({ tryMs }) }, read);
  }

  address(host: string): string {
    return (this.#options.endpoint ?? host).replace(/\/$/, "");
  }

  /** All pages of a list, each by the token of the one before. */
  pages<P extends Pick<Page, "nextPageToken">>(
    what: string,
    read: (next: { readonly pageToken?: string }) => Promise<P>,
  ): Promise<readonly P[]> {
    return allPages(
      `list of ${what}`,
      (pageToken) => read(pageToken === undefined ? {} : { pageToken }),
      ({ nextPageToken }) => nextPageToken,
    );
  }

  /**
   * All items of a list of Compute Engine; of an aggregated one those under `key` of each zone. Rejects when Google says that zones are
   * missing: what is in them would be taken for gone.
   */
  async list<T>(path: string, signal: AbortSignal, { key = "", filter = "" } = {}): Promise<readonly T[]> {
    const asked = { maxResults: PAGE, ...(filter && { filter }) };
    const pages = await this.pages(path, (next) =>
      this.compute<Page>({ method: "GET", path, query: { ...asked, ...next } }, signal),
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

/** The body of an answer, with what uploads read of its head. */
function read(answer: HttpAnswer, request: Unsent) {
  const { status, headers, text } = answer;
  if (status >= 400)
    throw new ApiError(callText(request), answer, { ...faultOf(answer), by: pageText(request, answer) });
  // An upload begins with an address in place of a body, and goes on with 308.
  const isUpload = new URL(request.url).pathname.startsWith("/upload/");
  const isBegun = status === 200 && headers.location !== undefined;
  if (status === 204 || (isUpload && text === "" && (status === 308 || isBegun)))
    return { answer: undefined as unknown, headers, status };
  const body = answeredJson<{ readonly kind?: unknown }>(answer, request);
  // A page of something in between, or a list of nothing, would look like an empty cloud.
  if (status < 300 && /^(compute|storage)#/.test(String(body.kind)))
    return { answer: body as unknown, headers, status };
  throw new OddAnswer(`${callText(request)}: the answer ${status} is not Google's`);
}

/** Without ids: `compute.POST.zones.instances`, `storage.GET.o`. */
function operationOf(method: string, path: string): string {
  const [, service, , , , scope = "", ...rest] = path.replace(/^\/upload/, "").split("/");
  const type = service === "compute" ? rest[/^(zones|regions)$/.test(scope) ? 1 : 0] : undefined;
  return [service, method, scope, type].filter(Boolean).join(".");
}
