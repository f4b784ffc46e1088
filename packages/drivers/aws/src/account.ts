import type { Host, Instance, Volume } from "@aws-sdk/client-ec2";
import {
  type Account,
  type ApiCall,
  type Clock,
  ListWatch,
  type Log,
  messageOf,
  type Place,
  SharedValue,
} from "@nodeyard/driver";
import { Aws, allPages, CallPace, codeOf, type Place as Site } from "./client/index.ts";
import type { sdk } from "./edge/sdk.ts";
import { ImageSources } from "./images/index.ts";
import { Lookups } from "./lookups.ts";
import { Batch } from "./machines/batch.ts";
import { Prices } from "./prices.ts";
import { Quotas } from "./quota/quotas.ts";

/** Most ids in one TerminateInstances or ReleaseHosts call. Each call costs a turn at the rate limit, so deletions share calls. */
const MOST_IDS = 50;
/** Ids of deletions that come within these milliseconds share a call. */
const GATHER_MS = 200;
/** Instances per page, the API's maximum. */
const PAGE = 1_000;
/** Hosts and volumes change together with instances and are rarely read, so their lists may be this old. */
const FRESH_MS = 5_000;
const STALE_MS = 30_000;
/** Milliseconds after which a new instance must be listed (EC2 API Reference, "Eventual consistency"). */
const LISTED_MS = 60_000;

/** Options of `AwsAccount`. */
export interface AccountOptions {
  readonly place: Site;
  readonly sdk: typeof sdk;
  readonly clock: Clock;
  readonly log: Log;
  readonly observe: ((call: ApiCall) => void) | undefined;
}

/**
 * One credential in one region: the connections, lists and rate limit that its providers share. It belongs to no provider:
 * nothing in it depends on a pool or label.
 */
export class AwsAccount implements Account {
  readonly aws: Aws;
  readonly pace: CallPace;
  /** All instances of the account in the region, also those of other users. Terminated instances are left out. */
  readonly instances: ListWatch<Instance>;
  /** Dedicated hosts of the account in the region, also released ones and those of other users. `invalidate` before a judgement. */
  readonly hosts: SharedValue<readonly Host[]>;
  readonly volumes: SharedValue<readonly Volume[]>;
  readonly lookups: Lookups;
  readonly sources: ImageSources;
  readonly quotas: Quotas;
  /** Asked only by providers with `price-api`. */
  readonly prices: Prices;
  /** Instances to terminate, by id. A call resolves when EC2 has accepted it, not when the machine is gone. */
  readonly terminations: Batch;
  readonly releases: Batch;
  /** Ends deletions in progress. They have no caller's signal, because several callers share a call. */
  readonly #closed = new AbortController();
  #place: Place = {};

  constructor({ place, sdk: modules, clock, log, observe }: AccountOptions) {
    this.pace = new CallPace(clock);
    const aws = new Aws(place, modules, { pace: this.pace, clock, log, observe });
    this.aws = aws;
    this.instances = new ListWatch<Instance>({
      clock,
      what: "list of instances",
      settledMs: LISTED_MS,
      // EC2 cannot list changes only, so each listing is complete.
      list: async (signal) => {
        const listed = await listInstances(aws, signal);
        this.#locate(listed.find(ownerOf));
        return listed;
      },
      idOf: ({ InstanceId }) => InstanceId ?? "",
      // EC2 still lists a terminated instance for about an hour.
      isGone: ({ State }) => State?.Name === "terminated",
      onFailure: (error) =>
        log.warn({ region: place.region, error: messageOf(error) }, "cannot list the instances; will retry"),
    });
    const shared = { clock, freshMs: FRESH_MS, staleMs: FRESH_MS };
    this.hosts = new SharedValue({
      ...shared,
      what: "list of hosts",
      load: (signal) => listHosts(aws, signal),
    });
    this.volumes = new SharedValue({
      ...shared,
      staleMs: STALE_MS,
      what: "list of volumes",
      load: (signal) => listVolumes(aws, signal),
    });
    this.lookups = new Lookups(aws, clock);
    this.sources = new ImageSources(aws, clock);
    this.quotas = new Quotas(aws, clock);
    this.prices = new Prices(aws, clock);
    const batch = { clock, most: MOST_IDS, gatherMs: GATHER_MS };
    const { signal } = this.#closed;
    this.terminations = new Batch({
      ...batch,
      // One unknown id makes EC2 refuse the whole call, and terminate none.
      isOfOne: (error) => codeOf(error).startsWith("InvalidInstanceID"),
      async send(ids) {
        await aws.ec2((ec2, to) => ec2.terminateInstances({ InstanceIds: [...ids] }, to), signal);
        return new Map();
      },
    });
    this.releases = new Batch({
      ...batch,
      isOfOne: (error) => codeOf(error).startsWith("InvalidHostI"),
      send: (ids) => releaseHosts(aws, ids, signal),
    });
  }

  /** Where the machines are. The account is known once the credentials or a machine of it have named it. */
  get place(): Place {
    return this.#place;
  }

  /** Finds out the region, and the account if the credentials name it. Rejects with the SDK's error. */
  async locate(signal: AbortSignal): Promise<void> {
    const account = await this.aws.account(signal);
    this.#place = { region: await this.aws.region(signal), ...(account !== undefined && { account }) };
    this.#locate([...(await this.instances.all(signal, false)).values()].find(ownerOf));
  }

  #locate(machine: Instance | undefined): void {
    const account = machine && ownerOf(machine);
    if (account !== undefined && this.#place.region !== undefined) this.#place = { ...this.#place, account };
  }

  /** The strictest `rate` of the account's providers, as time between two writes. Called by SharedAccounts. */
  limit(intervalMs: number): void {
    this.pace.limit(intervalMs);
  }

  /** Callers that still wait get an error. */
  async close(): Promise<void> {
    this.#closed.abort(new Error("the account is not used any more"));
    this.instances.close();
    const { hosts, volumes, lookups, sources, quotas, prices } = this;
    for (const shared of [hosts, volumes, lookups, sources, quotas, prices]) shared.close();
    await this.aws.close();
  }
}

/** The account that a machine belongs to. */
function ownerOf({ NetworkInterfaces }: Instance): string | undefined {
  return NetworkInterfaces?.find(({ OwnerId }) => OwnerId !== undefined)?.OwnerId;
}

function listInstances(aws: Aws, signal: AbortSignal): Promise<readonly Instance[]> {
  return allPages(
    (token) => aws.ec2((ec2, to) => ec2.describeInstances({ MaxResults: PAGE, ...token }, to), signal),
    ({ Reservations }) => Reservations?.flatMap(({ Instances }) => Instances ?? []),
  );
}

function listHosts(aws: Aws, signal: AbortSignal): Promise<readonly Host[]> {
  return allPages(
    (token) => aws.ec2((ec2, to) => ec2.describeHosts({ ...token }, to), signal),
    ({ Hosts }) => Hosts,
  );
}

/** All volumes of the account in the region, also those of other users: they use the same quota. */
function listVolumes(aws: Aws, signal: AbortSignal): Promise<readonly Volume[]> {
  return allPages(
    (token) => aws.ec2((ec2, to) => ec2.describeVolumes({ ...token }, to), signal),
    ({ Volumes }) => Volumes,
  );
}

/** Releases hosts. EC2 reports a host that is in use in a successful answer (`Unsuccessful`), not by an error. */
async function releaseHosts(
  aws: Aws,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, unknown>> {
  const { Unsuccessful } = await aws.ec2((ec2, to) => ec2.releaseHosts({ HostIds: [...ids] }, to), signal);
  return new Map(
    (Unsuccessful ?? []).map(({ ResourceId, Error: refusal }) => {
      const { Code = "Unknown", Message = "no reason is given" } = refusal ?? {};
      const error = new Error(`host ${ResourceId} is not released: ${Message}`);
      return [ResourceId ?? "", Object.assign(error, { name: Code, $metadata: {} })];
    }),
  );
}
