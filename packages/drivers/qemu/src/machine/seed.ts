import type { Port } from "./bridge.ts";

/** What a guest learns about itself at its boot. */
export interface SeedFacts {
  /** The machine's id. cloud-init repeats its first-boot steps when it changes. */
  readonly uuid: string;
  readonly hostname: string;
  readonly authorizedKeys: readonly string[];
  /** The label's user data, unchanged; null: an empty cloud-config. */
  readonly userData: string | null;
  /** Its port on the bridge, if it is on one. */
  readonly port?: Port;
}

/**
 * The guest's seed in the files of NoCloud (cloud-init's datasource reference). Nodeyard's settings are vendor data, so that the
 * label's user data stay unchanged and override them. The files are JSON, which is valid YAML and quotes every value.
 */
export function seedFiles(facts: SeedFacts): Readonly<Record<string, string>> {
  const { uuid, hostname, authorizedKeys, userData, port } = facts;
  const meta = { "instance-id": uuid, "local-hostname": hostname, "public-keys": authorizedKeys };
  const vendor = { hostname, ssh_deletekeys: true, ssh_authorized_keys: authorizedKeys };
  return {
    "meta-data": `${JSON.stringify(meta)}\n`,
    "user-data": userData ?? "#cloud-config\n{}\n",
    "vendor-data": `#cloud-config\n${JSON.stringify(vendor)}\n`,
    "authorized-keys": authorizedKeys.map((line) => `${line}\n`).join(""),
    ...(port === undefined ? {} : { "network-config": `${JSON.stringify(networkConfig(port))}\n` }),
  };
}

/** cloud-init's network configuration, version 2. */
function networkConfig({ mac, address, prefix, gateway }: Port) {
  const match = { macaddress: mac };
  const routes = [{ to: "0.0.0.0/0", via: gateway }];
  return { version: 2, ethernets: { machine: { match, addresses: [`${address}/${prefix}`], routes } } };
}
