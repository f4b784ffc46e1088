import { randomBytes } from "node:crypto";
import { usualHost } from "@nodeyard/driver/http";
import { type AzureHost, createAzureDriver } from "../driver.ts";
import { isOfHost } from "../identity.ts";

/** Environment, files, network and randomness of this host. */
export const thisHost: AzureHost = {
  ...usualHost("requests", isOfHost),
  // 64 characters, of which Azure wants small letters, large ones and digits.
  password: () => `${randomBytes(45).toString("base64url")}aA1z`,
};

/** The `azure` driver. */
export const azureDriver = createAzureDriver(thisHost);
