import { driverConformance } from "@nodeyard/driver/conformance";
import { describe, expect, test } from "vitest";
import { openstackRig } from "../../../../testing/openstack/rig.ts";
import { OpenstackSite } from "../../../../testing/openstack/site.ts";
import { openstackDriver } from "../../src/index.ts";

const site = OpenstackSite.start();

driverConformance("openstack, a real control plane", openstackDriver, () => openstackRig(site), {
  describe,
  test,
  expect,
});
