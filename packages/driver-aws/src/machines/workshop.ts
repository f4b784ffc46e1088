import {
  type CreateOrder,
  type DriverContext,
  DriverError,
  type LabelConfig,
  type Log,
  messageOf,
} from "@nodeyard/driver";
import type { AwsAccount } from "../account.ts";
import type { AwsLabelOwn, AwsProviderConfig } from "../config.ts";
import { Hosts } from "./hosts.ts";
import { Instances } from "./instances.ts";
import { Templates } from "./templates.ts";

/** What a provider works with; all that it knows is in the cloud. */
export interface Workshop {
  readonly config: AwsProviderConfig;
  readonly account: AwsAccount;
  readonly log: Log;
  readonly instances: Instances;
  readonly hosts: Hosts;
  readonly templates: Templates;
  /** The AMI that an order boots. */
  imageOf(order: CreateOrder, signal: AbortSignal): Promise<string>;
  /** The root device of what a label boots; undefined: its image is an upload, or is not to be had now. */
  rootOf(label: LabelConfig<AwsLabelOwn>, signal: AbortSignal): Promise<string | undefined>;
}

/** `closed` ends what goes on without its caller. */
export function workshop(
  config: AwsProviderConfig,
  { clock, log, installation }: DriverContext,
  account: AwsAccount,
  closed: AbortSignal,
): Workshop {
  return {
    config,
    account,
    log,
    instances: new Instances(account, clock, closed),
    hosts: new Hosts(account, clock),
    templates: new Templates(account.aws, config, installation),
    async imageOf({ label, imageExternalId }, signal) {
      if (typeof imageExternalId === "string") return imageExternalId;
      const { name, own, image } = label as LabelConfig<AwsLabelOwn>;
      if (own.source !== null) return account.sources.id(own.source, signal);
      const why = `no upload of ${image?.name ?? "any image"} is ready`;
      throw new DriverError("configuration", `label ${name} has no image here: ${why}`);
    },
    async rootOf({ name, own: { source } }, signal) {
      if (source === null) return undefined;
      try {
        return (await account.lookups.root(await account.sources.id(source, signal), signal)).name;
      } catch (error) {
        // One label's image keeps no provider from being opened; its launches say what is wrong.
        log.warn({ label: name, error: messageOf(error) }, "cannot look an image up");
        return undefined;
      }
    },
  };
}
