import type { SEED_FILES } from "./command-line.ts";

export interface SeedFacts {
  /** Of the machine; cloud-init does its first boot again for each new one. */
  readonly uuid: string;
  readonly hostname: string;
  readonly authorizedKeys: readonly string[];
  readonly userData: string | null;
}

/**
 * What the guest is told, in NoCloud's files (cloud-init's datasource reference). Ours go to the vendor data, so that user
 * data of a label stay as they are and win over them. JSON is YAML, and quotes what nobody foresaw.
 */
export function seedFiles(facts: SeedFacts): Readonly<Record<(typeof SEED_FILES)[number], string>> {
  const { uuid, hostname, authorizedKeys, userData } = facts;
  const meta = { "instance-id": uuid, "local-hostname": hostname, "public-keys": authorizedKeys };
  const vendor = { hostname, ssh_deletekeys: true, ssh_authorized_keys: authorizedKeys };
  return {
    "meta-data": `${JSON.stringify(meta)}\n`,
    "user-data": userData ?? "#cloud-config\n{}\n",
    "vendor-data": `#cloud-config\n${JSON.stringify(vendor)}\n`,
    "authorized-keys": authorizedKeys.map((line) => `${line}\n`).join(""),
  };
}
