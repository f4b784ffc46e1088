import { driverConformance } from "@nodeyard/driver/conformance";
import { openstackDriver } from "@nodeyard/driver-openstack";
import { describe, expect, test } from "vitest";
import { openstackRig } from "../rig.ts";
import { OpenstackSite } from "../site.ts";

const site = OpenstackSite.start();

driverConformance("openstack, a real control plane", openstackDriver, () => openstackRig(site), {
  describe,
  test,
  expect,
});
