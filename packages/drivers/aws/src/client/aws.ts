import type { EBS } from "@aws-sdk/client-ebs";
import type { EC2 } from "@aws-sdk/client-ec2";
import type { Pricing } from "@aws-sdk/client-pricing";
import type { S3 } from "@aws-sdk/client-s3";
import type { ServiceQuotas } from "@aws-sdk/client-service-quotas";
import type { SQS } from "@aws-sdk/client-sqs";
import type { SSM } from "@aws-sdk/client-ssm";
import { abortable, messageOf } from "@nodeyard/driver";
import type { sdk } from "../edge/sdk.ts";
import type { Of } from "./calls.ts";
import { codeOf } from "./errors.ts";
import { Login, type Place } from "./login.ts";
import { addPace, callSignal, type PaceContext } from "./pace.ts";

/** Attempts of one call, with the first. The SDK waits between them, and each attempt takes a turn at the rate limit. */
const ATTEMPTS = 4;

/** Time for TCP and TLS, milliseconds. */
const CONNECT_MS = 10_000;
/** Time for an answer to one attempt, milliseconds: longer than the 20 s for which SQS holds a question for notices back. */
const TRY_MS = 30_000;
/** The same for services that are sent the data of images. */
const DATA_TRY_MS = 120_000;

/** Second argument of each SDK call: `ec2.describeInstances({}, to)`. The signal ends the attempt in progress. */
export interface To {
  readonly abortSignal: AbortSignal;
}

/** What all clients of the SDK have. Their types differ per service. */
interface Client {
  readonly middlewareStack: object;
  destroy(): void;
}

/**
 * AWS services of one place, called through the official SDK. The client of a service is made at its first call. A call rejects with
 * the SDK's error (read it with `faultOf`) or with the signal's reason.
 */
export class Aws {
  readonly #place: Place;
  readonly #sdk: typeof sdk;
  readonly #context: PaceContext;
  readonly #login: Login;
  /** Clients by service. A promise, because its module is loaded first, and concurrent calls share that. */
  readonly #clients = new Map<string, Promise<Client>>();
  /** The same for other regions, by region. */
  readonly #elsewhere = new Map<string, Aws>();

  constructor(place: Place, modules: typeof sdk, context: PaceContext, login?: Login) {
    this.#login = login ?? new Login(place, modules, context);
    this.#place = place;
    this.#sdk = modules;
    this.#context = context;
  }

  ec2<T>(call: (ec2: Of<"ec2", EC2>, to: To) => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#call("ec2", this.#newEc2, call, signal);
  }

  /**
   * The region that calls go to: the configured one, or the one that the SDK finds (AWS_REGION, then the profile). Rejects with the
   * SDK's error when there is none.
   */
  async region(signal: AbortSignal): Promise<string> {
    return this.#place.region ?? this.#call("ec2", this.#newEc2, (ec2) => ec2.config.region(), signal);
  }

  /** The account of the credentials, if their source names it: roles and single sign-on do, plain keys need not. */
  account(signal: AbortSignal): Promise<string | undefined> {
    return this.#call(
      "ec2",
      this.#newEc2,
      async (ec2) => {
        const { accountId } = await ec2.config.credentials();
        return accountId;
      },
      signal,
    );
  }

  s3<T>(call: (s3: Of<"s3", S3>, to: To) => Promise<T>, signal: AbortSignal): Promise<T> {
    const make = async () => new (await this.#sdk.s3()).S3(await this.#options("s3", DATA_TRY_MS));
    return this.#call("s3", make, call, signal);
  }

  ebs<T>(call: (ebs: Of<"ebs", EBS>, to: To) => Promise<T>, signal: AbortSignal): Promise<T> {
    const make = async () => new (await this.#sdk.ebs()).EBS(await this.#options("ebs", DATA_TRY_MS));
    return this.#call("ebs", make, call, signal);
  }

  quotas<T>(
    call: (quotas: Of<"quotas", ServiceQuotas>, to: To) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const make = async () =>
      new (await this.#sdk.quotas()).ServiceQuotas(await this.#options("service_quotas"));
    return this.#call("service-quotas", make, call, signal);
  }

  pricing<T>(call: (pricing: Of<"pricing", Pricing>, to: To) => Promise<T>, signal: AbortSignal): Promise<T> {
    const make = async () => new (await this.#sdk.pricing()).Pricing(await this.#options("pricing"));
    return this.#call("pricing", make, call, signal);
  }

  sqs<T>(call: (sqs: Of<"sqs", SQS>, to: To) => Promise<T>, signal: AbortSignal): Promise<T> {
    const make = async () => new (await this.#sdk.sqs()).SQS(await this.#options("sqs"));
    return this.#call("sqs", make, call, signal);
  }

  ssm<T>(call: (ssm: Of<"ssm", SSM>, to: To) => Promise<T>, signal: AbortSignal): Promise<T> {
    const make = async () => new (await this.#sdk.ssm()).SSM(await this.#options("ssm"));
    return this.#call("ssm", make, call, signal);
  }

  /** Another region with the same credentials and rate limit, for copies of images. */
  in(region: string): Aws {
    if (region === this.#place.region) return this;
    const known =
      this.#elsewhere.get(region) ??
      new Aws({ ...this.#place, region }, this.#sdk, this.#context, this.#login);
    this.#elsewhere.set(region, known);
    return known;
  }

  /** Ends the connections of all regions. Requests in progress fail. */
  async close(): Promise<void> {
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    this.#login.close();
    await Promise.all([...this.#elsewhere.values()].map((other) => other.close()));
    for (const client of await Promise.allSettled(clients))
      if (client.status === "fulfilled") client.value.destroy();
  }

  /** Runs one SDK call on the service's client. The caller's abort rejects at once, whatever the SDK does with its own signal. */
  async #call<C extends Client, T>(
    service: string,
    make: () => Promise<C>,
    call: (client: C, to: To) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    signal.throwIfAborted();
    const known = this.#clients.get(service) as Promise<C> | undefined;
    const client = known ?? this.#made(service, make);
    if (known === undefined) this.#clients.set(service, client);
    const to = { abortSignal: signal };
    // The signal is passed twice: to the SDK, which ends the request with it, and to the middleware, which waits for its turn.
    const send = () => client.then((ready) => callSignal.run(signal, () => call(ready, to)));
    const work = send().catch((error: unknown) => {
      if (this.#login.mayRenew(codeOf(error))) return send();
      throw error;
    });
    return abortable(work, signal);
  }

  /** Makes a client with the rate limit in it. A client that could not be made is not kept, so the next call tries again. */
  async #made<C extends Client>(service: string, make: () => Promise<C>): Promise<C> {
    try {
      const client = await make();
      addPace(client.middlewareStack, service, this.#context);
      return client;
    } catch (error) {
      this.#clients.delete(service);
      throw error;
    }
  }

  readonly #newEc2 = async () => new (await this.#sdk.ec2()).EC2(await this.#options("ec2"));

  /** Settings of every client. A missing region or profile lets the SDK search for it. */
  async #options(service: string, limitMs = TRY_MS) {
    const { region, profile, client, tryMs = limitMs } = this.#place;
    const { ProxiedHandler } = await this.#sdk.handler();
    const { settingsOf } = await this.#sdk.settings();
    const { endpoint = client?.endpoint, ca } = await settingsOf(profile, service);
    const logger = sdkLog(this.#context.log);
    return {
      maxAttempts: ATTEMPTS,
      logger,
      // Without limits of its own the SDK waits for an answer for ever. The socket's is for a body that stops on its way.
      requestHandler: new ProxiedHandler({
        connectionTimeout: CONNECT_MS,
        requestTimeout: tryMs,
        socketTimeout: tryMs,
        throwOnRequestTimeout: true,
        logger,
        ...(ca && { ca }),
      }),
      ...(endpoint !== undefined && { endpoint }),
      credentials: this.#login.provider,
      ...(region === null ? {} : { region }),
      ...(profile === null ? {} : { profile }),
    };
  }
}

/** The SDK's own warnings. What it tells of each call is left out: it has the call's data, and a failure is the caller's. */
function sdkLog(log: PaceContext["log"]) {
  const drop = () => {};
  const warn = (...said: readonly unknown[]) => log.warn({ sdk: true }, said.map(messageOf).join(" "));
  return { trace: drop, debug: drop, info: drop, warn, error: drop };
}
