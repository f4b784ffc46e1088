import type { Instance } from "@aws-sdk/client-ec2";
import {
  type Account,
  type DriverContext,
  ListWatch,
  messageOf,
  type OpenFile,
  type Place,
  present,
} from "@nodeyard/driver";
import { Aws, type AwsOptions } from "./client/aws.ts";
import type { AwsProviderConfig } from "./config.ts";
import { type Lookups, lookupsOf } from "./lookups.ts";
import { batched } from "./machines/batch.ts";

/** Instances per page, the API's maximum. */
const PAGE = 1_000;
/** Milliseconds after which a new machine must be listed (EC2 API Reference, "Eventual consistency"). */
export const LISTED_MS = 60_000;

/** One credential in one region: connections, lists and rate limit that its providers share. Nothing in it depends on a pool or label. */
export class AwsAccount implements Account {
  readonly aws: Aws;
  /** All instances of the account in the region, also those of other users. Terminated instances are left out. */
  readonly instances: ListWatch<Instance>;
  readonly lookups: Lookups;
  /** Terminates an instance, by id. Resolves when EC2 has accepted it, not when the machine is gone. */
  readonly terminate: (id: string) => Promise<void>;
  /** Ends deletions in progress. They have no caller's signal, because several callers share a call. */
  readonly #closed = new AbortController();
  /** Where the machines are. The account is known once a machine of it or the credentials have named it. */
  place: Place = {};

  constructor(options: AwsOptions) {
    const { place, clock, log } = options;
    const aws = new Aws(options);
    this.aws = aws;
    // EC2 cannot list changes only, so each listing is complete.
    this.instances = new ListWatch<Instance>({
      ...{ clock, what: "list of instances", settledMs: LISTED_MS },
      list: async (signal) => {
        const request = { MaxResults: PAGE };
        const all = await aws.list("ec2.describeInstances", "Reservations", request, signal);
        this.place = { ...this.place, ...present({ account: all[0]?.OwnerId }) };
        return all.flatMap(({ Instances = [] }) => Instances);
      },
      idOf: ({ InstanceId = "" }) => InstanceId,
      // EC2 still lists a terminated instance for about an hour.
      isGone: ({ State }) => State?.Name === "terminated",
      onFailure: (error) =>
        log.warn({ region: place.region, error: messageOf(error) }, "cannot list the instances; will retry"),
    });
    this.lookups = lookupsOf(aws, clock);
    const terminate = async (InstanceIds: string[]) => {
      await aws.call("ec2.terminateInstances", { InstanceIds }, this.#closed.signal);
      return new Map();
    };
    // One unknown id makes EC2 refuse the whole call, and terminate none.
    this.terminate = batched(clock, terminate, /^InvalidInstanceID/);
  }

  /** Finds out the region, and the account if the credentials name it. Rejects with the SDK's error. */
  async locate(signal: AbortSignal): Promise<void> {
    const region = await this.aws.region(signal);
    const account = this.place.account ?? (await this.aws.account(signal));
    this.place = { region, ...present({ account }) };
  }

  /** The strictest `rate` of the account's providers, as time between two writes. Called by SharedAccounts. */
  limit(intervalMs: number): void {
    this.aws.pace.limit(intervalMs);
  }

  /** Callers that still wait get an error. */
  async close(): Promise<void> {
    this.#closed.abort(new Error("the account is not used any more"));
    for (const shared of [this.instances, this.lookups.known]) shared.close();
    await this.aws.close();
  }
}

/** What the parts of a provider work with. `closed` ends what goes on without a caller, such as the reading of notices. */
export interface Site extends DriverContext, Pick<AwsAccount, "aws" | "instances" | "lookups" | "terminate"> {
  readonly config: AwsProviderConfig;
  readonly openFile: OpenFile;
  readonly closed: AbortSignal;
}
