import type { DriverConfig } from "@nodeyard/driver";
import { fakeConfig } from "@nodeyard/driver-fake";
import { openstackConfig } from "@nodeyard/driver-openstack";
import { qemuConfig } from "@nodeyard/driver-qemu";
import { sliverConfig } from "@nodeyard/driver-sliver";
import { metastaticDriver } from "@nodeyard/driver-sliver/metastatic";
import { staticConfig } from "@nodeyard/driver-static";
import { jsonSchema } from "./json-schema.ts";
import { referencePage, sections } from "./reference.ts";

const drivers: readonly (readonly [string, DriverConfig])[] = [
  ["fake", fakeConfig as DriverConfig],
  ["metastatic", metastaticDriver.config as DriverConfig],
  ["openstack", openstackConfig as DriverConfig],
  ["qemu", qemuConfig as DriverConfig],
  ["sliver", sliverConfig as DriverConfig],
  ["static", staticConfig as DriverConfig],
];

/** `docs/reference/configuration.md` */
export function configurationPage(): string {
  return referencePage(drivers);
}

/** What that page consists of. */
export function configurationSections() {
  return sections(drivers);
}

/** `docs/reference/nodepool.schema.json`, for editors. */
export function configurationSchema(): string {
  return `${JSON.stringify(jsonSchema(drivers), null, 2)}\n`;
}
