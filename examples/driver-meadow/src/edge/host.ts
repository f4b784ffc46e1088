import { usualHost } from "@nodeyard/driver/http";
import { createMeadowDriver } from "../driver.ts";

/** The driver on this host, which meets the cloud through the proxies of Python's `requests`. */
export const meadowDriver = createMeadowDriver(usualHost("requests"));
