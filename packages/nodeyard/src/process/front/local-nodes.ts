import type { Config } from "../../config/index.ts";
import type { Drivers } from "../driver-registry.ts";

/**
 * Names of providers whose nodes run on this machine. Code in them is hostile and may reach what listens here, loopback included
 * (rule 11), so nothing may that does not ask for a token.
 */
export function localProviders({ providers }: Config, drivers: Drivers): readonly string[] {
  return providers
    .filter(({ driver }) => drivers.driver(driver).capabilities.local === true)
    .map(({ name }) => name);
}
