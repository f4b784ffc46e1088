import type { Host, Instance } from "@aws-sdk/client-ec2";
import {
  type Account,
  ApiError,
  defined,
  ListWatch,
  type ListWatchOptions,
  messageOf,
  type Place,
} from "@nodeyard/driver";
import { Aws, type AwsOptions } from "./client/index.ts";
import { type Lookups, lookupsOf } from "./lookups.ts";
import { batched, type Refused } from "./machines/batch.ts";

/** Instances per page, the API's maximum. */
const PAGE = 1_000;
/** Milliseconds after which a new instance must be listed (EC2 API Reference, "Eventual consistency"). */
const LISTED_MS = 60_000;

/**
 * One credential in one region: the connections, lists and rate limit that its providers share. It belongs to no provider:
 * nothing in it depends on a pool or label.
 */
export class AwsAccount implements Account {
  readonly aws: Aws;
  /** All instances of the account in the region, also those of other users. Terminated instances are left out. */
  readonly instances: ListWatch<Instance>;
  /** The same of dedicated hosts. Released ones are left out: they cost nothing and cannot be used any more (EC2 API Reference, "Host"). */
  readonly hosts: ListWatch<Host>;
  readonly lookups: Lookups;
  /** Instances to terminate, by id. A call resolves when EC2 has accepted it, not when the machine is gone. */
  readonly terminate: (id: string) => Promise<void>;
  readonly release: (id: string) => Promise<void>;
  /** Ends deletions in progress. They have no caller's signal, because several callers share a call. */
  readonly #closed = new AbortController();
  #region: string | undefined;
  #owner: string | undefined;

  constructor(options: AwsOptions) {
    const { place, clock, log } = options;
    const aws = new Aws(options);
    this.aws = aws;
    // EC2 cannot list changes only, so each listing is complete.
    const watch = <T>(what: string, how: Pick<ListWatchOptions<T>, "list" | "idOf" | "isGone">) =>
      new ListWatch<T>({
        ...{ ...how, clock, what: `list of ${what}`, settledMs: LISTED_MS },
        onFailure: (error) =>
          log.warn({ region: place.region, error: messageOf(error) }, `cannot list the ${what}; will retry`),
      });
    this.instances = watch<Instance>("instances", {
      list: async (signal) => {
        const request = { MaxResults: PAGE };
        const all = await aws.list("ec2.describeInstances", "Reservations", request, signal);
        this.#owner = all[0]?.OwnerId ?? this.#owner;
        return all.flatMap(({ Instances = [] }) => Instances);
      },
      idOf: ({ InstanceId = "" }) => InstanceId,
      // EC2 still lists a terminated instance for about an hour.
      isGone: ({ State }) => State?.Name === "terminated",
    });
    this.hosts = watch<Host>("hosts", {
      list: (signal) => aws.list("ec2.describeHosts", "Hosts", {}, signal),
      idOf: ({ HostId = "" }) => HostId,
      isGone: ({ State = "" }) => State.startsWith("released"),
    });
    this.lookups = lookupsOf(aws, clock);
    const { signal } = this.#closed;
    const terminate = async (ids: readonly string[]) => {
      await aws.call("ec2.terminateInstances", { InstanceIds: [...ids] }, signal);
      return new Map();
    };
    // One unknown id makes EC2 refuse the whole call, and terminate none.
    this.terminate = batched(clock, terminate, /^InvalidInstanceID/);
    this.release = batched(clock, (ids) => releaseHosts(aws, ids, signal), /^InvalidHostI/);
  }

  /** Where the machines are. The account is known once a machine of it or the credentials have named it. */
  get place(): Place {
    return defined({ region: this.#region, account: this.#owner }) as Place;
  }

  /** Finds out the region, and the account if the credentials name it. Rejects with the SDK's error. */
  async locate(signal: AbortSignal): Promise<void> {
    this.#region = await this.aws.region(signal);
    this.#owner ??= await this.aws.account(signal);
  }

  /** The strictest `rate` of the account's providers, as time between two writes. Called by SharedAccounts. */
  limit(intervalMs: number): void {
    this.aws.pace.limit(intervalMs);
  }

  /** Callers that still wait get an error. */
  async close(): Promise<void> {
    this.#closed.abort(new Error("the account is not used any more"));
    for (const shared of [this.instances, this.hosts, this.lookups.known]) shared.close();
    await this.aws.close();
  }
}

/** Releases hosts. EC2 reports a host that is in use in a successful answer (`Unsuccessful`), not by an error. */
async function releaseHosts(aws: Aws, ids: readonly string[], signal: AbortSignal): Promise<Refused> {
  const { Unsuccessful = [] } = await aws.call("ec2.releaseHosts", { HostIds: [...ids] }, signal);
  return new Map(
    Unsuccessful.map(({ ResourceId = "", Error: refusal }) => {
      const { Code = "Unknown", Message = "no reason is given" } = refusal ?? {};
      const fault = { codes: [Code.replace(/^Client\./, "")], text: Message };
      return [
        ResourceId,
        new ApiError(`the release of host ${ResourceId}`, { status: 200, text: "" }, fault),
      ];
    }),
  );
}
