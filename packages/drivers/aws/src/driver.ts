import type { Instance } from "@aws-sdk/client-ec2";
import { cloudDriver, type Driver, type OpenFile, present } from "@nodeyard/driver";
import { AwsAccount } from "./account.ts";
import type { Place } from "./client/index.ts";
import { type AwsProviderConfig, awsConfig } from "./config.ts";
import type { sdk } from "./edge/sdk.ts";
import { mapError } from "./errors.ts";
import { awsCloud } from "./provider.ts";

/** Dependencies of the driver on its host. Tests pass their own. */
export interface AwsHost {
  /** The modules of Amazon's SDK, each loaded at its first use. */
  readonly sdk: typeof sdk;
  readonly openFile: OpenFile;
  /** Another endpoint with its own credentials, for tests. */
  readonly client?: Place["client"];
  /** Time limit of an attempt of a call, milliseconds. Default: `client/aws.ts`. */
  readonly tryMs?: number;
}

/** The driver on a given host. */
export function createAwsDriver({
  sdk: modules,
  openFile,
  client,
  tryMs,
}: AwsHost): Driver<AwsProviderConfig> {
  return cloudDriver<AwsProviderConfig, AwsAccount, Instance, string | null>(
    { name: "aws", config: awsConfig, mapError },
    (config, context, closed) => {
      const { rate } = config.own;
      const found = modules.placeOf(config.own);
      const place = { ...found, ...present({ client, tryMs }) };
      return {
        // Profile and region stand for the credential. Two profiles of one account have limiters of their own and are throttled by AWS together.
        key: JSON.stringify(found),
        intervalMs: rate === 0 ? 0 : 1_000 / rate,
        account: () => new AwsAccount({ ...context, place, sdk: modules }),
        cloud: (account) => awsCloud(config, context, account, openFile, closed),
      };
    },
  );
}
