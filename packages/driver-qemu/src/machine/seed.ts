import type { Port } from "./bridge.ts";

export interface SeedFacts {
  /** Of the machine; cloud-init does its first boot again for each new one. */
  readonly uuid: string;
  readonly hostname: string;
  readonly authorizedKeys: readonly string[];
  readonly userData: string | null;
  /** Its place on the bridge, where it is on one. */
  readonly port?: Port;
}

/**
 * The seed of the guest, in NoCloud's files (cloud-init's datasource reference). Ours go to the vendor data, so that user
 * data of a label stay as they are and win over them. JSON is YAML, and quotes what nobody foresaw.
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

/** Version 2 of cloud-init's network configuration. */
function networkConfig({ mac, address, prefix, gateway }: Port) {
  const match = { macaddress: mac };
  const routes = [{ to: "0.0.0.0/0", via: gateway }];
  return { version: 2, ethernets: { machine: { match, addresses: [`${address}/${prefix}`], routes } } };
}
