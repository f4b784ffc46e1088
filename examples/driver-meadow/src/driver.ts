import {
  cloudDriver,
  type Driver,
  neededText,
  type OpenFile,
  type ReadFile,
  type Wire,
} from "@nodeyard/driver";
import { MeadowApi, type Thing } from "./api.ts";
import { type MeadowProviderConfig, meadowConfig } from "./config.ts";
import { mapError, meadow } from "./provider.ts";

/** What the driver uses of its host; tests provide their own. */
export interface MeadowHost {
  connect(): Wire;
  readonly readFile: ReadFile;
  readonly openFile: OpenFile;
}

/** Providers with one token share connections. */
export function createMeadowDriver({
  connect,
  readFile,
  openFile,
}: MeadowHost): Driver<MeadowProviderConfig> {
  const parts = { name: "meadow", config: meadowConfig, mapError };
  return cloudDriver<MeadowProviderConfig, MeadowApi, Thing>(parts, (config, context, closed) => {
    const { endpoint, tokenFile } = config.own;
    return {
      key: JSON.stringify([endpoint, tokenFile]),
      intervalMs: 0,
      account: () => new MeadowApi(endpoint, connect(), () => neededText(tokenFile, readFile), context),
      cloud: (api) => meadow(config, context, api, openFile, closed),
    };
  });
}
