import { type ConformanceRig, driverConformance } from "@nodeyard/driver-testkit";
import { describe, expect, test } from "vitest";
import { openstackRig } from "../../../../../testing/openstack/rig.ts";
import { OpenstackSite } from "../../../../../testing/openstack/site.ts";
import { openstackDriver } from "../../src/index.ts";

/** Most of a test is waiting, so several run at once, each in a project of its own; vitest's `maxConcurrency` is as many. */
const PROJECTS = 4;
const idle = Array.from({ length: PROJECTS }, (_, index) => OpenstackSite.start(`conformance-${index}`));
const elsewhere = OpenstackSite.start("conformance-elsewhere");

async function setup(): Promise<ConformanceRig> {
  const site = idle.pop();
  if (site === undefined) throw new Error(`more than ${PROJECTS} tests at once`);
  const rig = await openstackRig(site, elsewhere);
  return {
    ...rig,
    async stop() {
      await rig.stop();
      idle.push(site);
    },
  };
}

const kit = { describe, test: test.concurrent, expect };
driverConformance("openstack, a real control plane", openstackDriver, setup, kit);
