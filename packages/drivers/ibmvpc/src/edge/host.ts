import { METADATA } from "@nodeyard/driver";
import { usualHost } from "@nodeyard/driver/http";
import { createIbmDriver } from "../driver.ts";

/** Environment, files and network of this host. No proxy reaches the metadata service. */
export const thisHost = usualHost("requests", (url) => url.startsWith(`${METADATA}/`));

/** The `ibmvpc` driver. */
export const ibmvpcDriver = createIbmDriver(thisHost);
