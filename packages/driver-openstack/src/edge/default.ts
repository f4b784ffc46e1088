import { createOpenstackDriver } from "../driver.ts";
import { thisHost } from "./host.ts";

/** The `openstack` driver. */
export const openstackDriver = createOpenstackDriver(thisHost);
