import { randomInt } from "node:crypto";
import { usualHost } from "@nodeyard/driver/http";
import { type AzureHost, createAzureDriver } from "../driver.ts";
import { isOfHost } from "../identity.ts";

/** What a password needs one of each. */
const KINDS = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"];
const ALL = KINDS.join("");
const LENGTH = 64;

/** Environment, files, network and randomness of this host. */
export const thisHost: AzureHost = {
  ...usualHost("requests", isOfHost),
  password() {
    for (;;) {
      const password = Array.from({ length: LENGTH }, () => ALL[randomInt(ALL.length)]).join("");
      if (KINDS.every((kind) => [...kind].some((one) => password.includes(one)))) return password;
    }
  },
};

/** The `azure` driver. */
export const azureDriver = createAzureDriver(thisHost);
