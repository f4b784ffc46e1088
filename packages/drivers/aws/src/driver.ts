import { type Driver, type OpenFile, SharedAccounts } from "@nodeyard/driver";
import { AwsAccount } from "./account.ts";
import type { Place } from "./client/index.ts";
import { type AwsProviderConfig, awsConfig } from "./config.ts";
import type { sdk } from "./edge/sdk.ts";
import { awsProvider } from "./provider.ts";

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

/** The driver on a given host. Providers with the same profile and region share connections, lists and the rate limit. */
export function createAwsDriver(host: AwsHost): Driver<AwsProviderConfig> {
  const { client, tryMs } = host;
  const own = { ...(client && { client }), ...(tryMs !== undefined && { tryMs }) };
  const accounts = new SharedAccounts<AwsAccount>();
  return {
    name: "aws",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config: awsConfig,
    async open(config, context) {
      const { clock, log, observe } = context;
      const { rate } = config.own;
      const place = (await host.sdk.settings()).placeOf(config.own);
      const share = () =>
        accounts.share(
          clock,
          // Profile and region stand for the credential. Two profiles of one account have limiters of their own and are throttled
          // by AWS together.
          JSON.stringify(place),
          rate === 0 ? 0 : 1_000 / rate,
          () => new AwsAccount({ place: { ...place, ...own }, sdk: host.sdk, clock, log, observe }),
        );
      return awsProvider(config, context, share, host.openFile);
    },
  };
}
