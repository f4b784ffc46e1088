import type { Host } from "@aws-sdk/client-ec2";
import type { DriverContext, Log, NodeMachines } from "@nodeyard/driver";
import type { AwsAccount } from "../account.ts";
import type { AwsProviderConfig } from "../config.ts";
import { hostsOf } from "./hosts.ts";
import { Instances } from "./instances.ts";
import { type Templates, templatesOf } from "./templates.ts";

/** Dependencies of a provider's machine operations. All state is in AWS. */
export interface Parts {
  readonly config: AwsProviderConfig;
  /** Shared with other providers of the credential; the rest is this provider's own. */
  readonly account: AwsAccount;
  readonly log: Log;
  readonly instances: Instances;
  readonly hosts: NodeMachines<Host>;
  readonly templates: Templates;
}

/** The handles of one provider's operations. No I/O. `closed` aborts work that goes on after its caller gave up. */
export function partsOf(
  config: AwsProviderConfig,
  { clock, log, installation }: DriverContext,
  account: AwsAccount,
  closed: AbortSignal,
): Parts {
  return {
    ...{ config, account, log },
    instances: new Instances(account, clock, closed),
    hosts: hostsOf(account, clock, closed),
    templates: templatesOf(account, config, installation, log),
  };
}
