import type { DriverConfig } from "@nodeyard/driver";
import { awsConfig } from "@nodeyard/driver-aws";
import { azureConfig } from "@nodeyard/driver-azure";
import { fakeConfig } from "@nodeyard/driver-fake";
import { gceConfig } from "@nodeyard/driver-gce";
import { ibmvpcConfig } from "@nodeyard/driver-ibmvpc";
import { kubernetesConfig, openshiftConfig, openshiftpodsConfig } from "@nodeyard/driver-kubernetes";
import { lxdConfig } from "@nodeyard/driver-lxd";
import { metastaticDriver } from "@nodeyard/driver-metastatic";
import { openstackConfig } from "@nodeyard/driver-openstack";
import { qemuConfig } from "@nodeyard/driver-qemu";
import { sliverConfig } from "@nodeyard/driver-sliver";
import { staticConfig } from "@nodeyard/driver-static";
import { jsonSchema } from "./json-schema.ts";
import { referencePage, sections } from "./reference.ts";

const drivers: readonly (readonly [string, DriverConfig])[] = [
  ["aws", awsConfig as DriverConfig],
  ["azure", azureConfig as DriverConfig],
  ["fake", fakeConfig as DriverConfig],
  ["gce", gceConfig as DriverConfig],
  ["ibmvpc", ibmvpcConfig as DriverConfig],
  ["kubernetes", kubernetesConfig as DriverConfig],
  ["lxd", lxdConfig as DriverConfig],
  ["metastatic", metastaticDriver.config as DriverConfig],
  ["openshift", openshiftConfig as DriverConfig],
  ["openshiftpods", openshiftpodsConfig as DriverConfig],
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
