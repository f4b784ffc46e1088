import {
  type CreateOrder,
  type DriverContext,
  type LabelConfig,
  type Log,
  messageOf,
  noImage,
} from "@nodeyard/driver";
import type { AwsAccount } from "../account.ts";
import type { AwsLabelOwn, AwsProviderConfig } from "../config.ts";
import { Hosts } from "./hosts.ts";
import { Instances } from "./instances.ts";
import { Templates } from "./templates.ts";

/** Dependencies of a provider's machine operations. All state is in AWS. */
export interface Parts {
  readonly config: AwsProviderConfig;
  /** Shared with other providers of the credential; the rest is this provider's own. */
  readonly account: AwsAccount;
  readonly log: Log;
  readonly instances: Instances;
  readonly hosts: Hosts;
  readonly templates: Templates;
  /** The AMI of an order. Rejects with "configuration" when the label's image has no ready upload here, or its source names no AMI. */
  imageOf(order: CreateOrder, signal: AbortSignal): Promise<string>;
  /** Root device of a label's AMI; undefined when the image is an upload, or cannot be looked up now. */
  rootOf(label: LabelConfig<AwsLabelOwn>, signal: AbortSignal): Promise<string | undefined>;
}

/** The handles of one provider's operations. No I/O. `closed` aborts work that goes on after its caller gave up. */
export function partsOf(
  config: AwsProviderConfig,
  { clock, log, installation }: DriverContext,
  account: AwsAccount,
  closed: AbortSignal,
): Parts {
  return {
    config,
    account,
    log,
    instances: new Instances(account, clock, closed),
    hosts: new Hosts(account, clock),
    templates: new Templates(account.aws, config, installation),
    async imageOf({ label, imageExternalId }, signal) {
      // The upload's AMI, which the launcher chose. It wins over a source, which only labels with a cloud image have.
      if (typeof imageExternalId === "string") return imageExternalId;
      const { source } = label.own as AwsLabelOwn;
      if (source !== null) return account.sources.id(source, signal);
      throw noImage(label);
    },
    async rootOf({ name, own: { source } }, signal) {
      // The AMI of an upload is known with an order only. AMIs of this driver have the default root device (`templateOf`).
      if (source === null) return undefined;
      try {
        return (await account.lookups.root(await account.sources.id(source, signal), signal)).name;
      } catch (error) {
        // The image of one label must not keep the provider from opening. Launches of that label report the error.
        log.warn({ label: name, error: messageOf(error) }, "cannot look an image up");
        return undefined;
      }
    },
  };
}
