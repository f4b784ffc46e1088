import {
  abortable,
  allPages,
  CallRates,
  type DriverContext,
  DriverError,
  messageOf,
  present,
  unlessRefused,
} from "@nodeyard/driver";
import type { sdk } from "../edge/sdk.ts";
import type { Call, Client, Input, Items, Output, Service } from "./calls.ts";
import { kitError } from "./errors.ts";
import { AGED, credentialsOf, type Place } from "./login.ts";
import { addPace, callSignal } from "./pace.ts";

/** Attempts of one call, with the first. The SDK waits between them, and each attempt takes a turn at the rate limit. */
const ATTEMPTS = 4;

/** Time for TCP and TLS, milliseconds. */
const CONNECT_MS = 10_000;
/** Time for an answer to one attempt, milliseconds: longer than the 20 s for which SQS holds a question for notices back. */
const TRY_MS = 30_000;
/** The same for services that are sent the data of images. */
const DATA_TRY_MS = 120_000;

/** Codes for what does not exist, of all services. */
const GONE =
  /^(Invalid\w+\.(NotFound(Exception)?|Unavailable)|NoSuch\w+|NotFound|ResourceNotFoundException)$/;

/** Where services are called, and what the provider that calls them first has of its process. */
export interface AwsOptions extends Pick<DriverContext, "clock" | "log" | "observe"> {
  readonly place: Place;
  readonly sdk: typeof sdk;
}

/** The SDK's method of a call. */
type Method = (input: object, to: { readonly abortSignal: AbortSignal }) => Promise<unknown>;

/** AWS services of one place, by the official SDK. Calls reject with ApiError, NoAnswer, CloudConfigError (no credentials) or the signal's reason. */
export class Aws {
  readonly pace: CallRates;
  readonly #options: AwsOptions;
  readonly #credentials: ReturnType<typeof credentialsOf>;
  /** Clients of all regions, by service and region. A promise, because its module is loaded first, and concurrent calls share that. */
  readonly #clients: Map<string, Promise<Client<Service>>>;

  /** `home`: another region, whose credentials, rate limit and connections it shares. */
  constructor(options: AwsOptions, home?: Aws) {
    const { place, sdk: modules, clock } = options;
    this.#options = options;
    this.#credentials = home ? home.#credentials : credentialsOf(place, modules, clock);
    this.pace = home?.pace ?? new CallRates(clock);
    this.#clients = home ? home.#clients : new Map();
  }

  /** Runs one call. The caller's abort rejects at once, whatever the SDK does with its own signal. */
  async call<C extends Call>(call: C, input: Input<C>, signal: AbortSignal): Promise<Output<C>> {
    signal.throwIfAborted();
    const [service, name] = call.split(".") as [Service, string];
    const send = async () => {
      const client = (await this.client(service)) as unknown as Readonly<Record<string, Method>>;
      // The signal is passed twice: to the SDK, which ends the request with it, and to the middleware, which waits for its turn.
      return callSignal.run(signal, () => client[name]!(input as object, { abortSignal: signal }));
    };
    const work = send()
      .catch((error: Error) => {
        if (!AGED.test(error.name)) throw error;
        this.#credentials.refused();
        return send();
      })
      .catch((error: unknown) => {
        throw kitError(call, error);
      });
    return abortable(work, signal) as Promise<Output<C>>;
  }

  /** What is under `key` in all pages of a listing. S3, which names pages in its own way, is not asked so. */
  async list<C extends Call, K extends keyof Output<C>>(
    call: C,
    key: K,
    input: Input<C>,
    signal: AbortSignal,
  ): Promise<readonly Items<Output<C>[K]>[]> {
    const pages = await allPages(
      call,
      (NextToken) => this.call(call, { ...(input as object), ...present({ NextToken }) } as Input<C>, signal),
      (page) => (page as { readonly NextToken?: string }).NextToken,
    );
    return pages.flatMap((page) => (page[key] ?? []) as Items<Output<C>[K]>[]);
  }

  /** The answer of a call; undefined: what it is about does not exist. */
  maybe<C extends Call>(call: C, input: Input<C>, signal: AbortSignal): Promise<Output<C> | undefined> {
    return unlessRefused(this.call(call, input, signal), GONE);
  }

  /** The configured region, or the one that the SDK finds (AWS_REGION, then the profile). Rejects with the SDK's error when there is none. */
  async region(signal: AbortSignal): Promise<string> {
    return this.#options.place.region ?? abortable((await this.client("ec2")).config.region(), signal);
  }

  /** The account of the credentials, if their source names it: roles and single sign-on do, plain keys need not. */
  async account(signal: AbortSignal): Promise<string | undefined> {
    const { accountId } = await abortable((await this.client("ec2")).config.credentials(), signal);
    return accountId;
  }

  /** Another region, for copies of images and for prices. */
  in(region: string): Aws {
    const place = { ...this.#options.place, region };
    return new Aws({ ...this.#options, place }, this);
  }

  /** Ends the connections of all regions. Requests in progress fail. */
  async close(): Promise<void> {
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    this.#credentials.close(new DriverError("transient", "the account is not used any more"));
    for (const client of await Promise.allSettled(clients))
      if (client.status === "fulfilled") client.value.destroy();
  }

  /** The SDK's client of a service, with the rate limit in it. One that could not be made is not kept, so the next call tries again. */
  client<S extends Service>(service: S): Promise<Client<S>> {
    const key = `${service} ${this.#options.place.region}`;
    let client = this.#clients.get(key);
    if (client === undefined) {
      client = this.#made(service);
      this.#clients.set(key, client);
      client.catch(() => this.#clients.delete(key));
    }
    return client as Promise<Client<S>>;
  }

  /** A missing region or profile lets the SDK search for it. */
  async #made(service: Service): Promise<Client<Service>> {
    const { place, sdk: modules, log } = this.#options;
    const { region, profile } = place;
    const tryMs = /^(s3|ebs)$/.test(service) ? DATA_TRY_MS : TRY_MS;
    const id = service === "quotas" ? "service-quotas" : service;
    const logger = sdkLog(log);
    // Without limits of its own the SDK waits for an answer for ever. The socket's is for a body that stops on its way.
    const limits = { connectionTimeout: CONNECT_MS, requestTimeout: tryMs, socketTimeout: tryMs };
    const how = { ...limits, throwOnRequestTimeout: true, logger };
    // Variables of endpoints name it in this form.
    const { endpoint, requestHandler } = await modules.connectionOf(profile, id.replace("-", "_"), how);
    const Made = (await modules[service]()) as new (options: object) => Client<Service>;
    const made = new Made({
      ...{ maxAttempts: ATTEMPTS, logger, requestHandler },
      // With an end that has passed: a client keeps any others for ever, and would not ask here again.
      credentials: async () => ({ ...(await this.#credentials.get()), expiration: new Date(0) }),
      ...present({ endpoint, region, profile }),
    });
    addPace(made.middlewareStack, id, this.pace, this.#options);
    return made;
  }
}

/** The SDK's own warnings. What it tells of each call is left out: it has the call's data, and a failure is the caller's. */
function sdkLog(log: AwsOptions["log"]) {
  const drop = () => {};
  const warn = (...said: readonly unknown[]) => log.warn({ sdk: true }, said.map(messageOf).join(" "));
  return { trace: drop, debug: drop, info: drop, warn, error: drop };
}
