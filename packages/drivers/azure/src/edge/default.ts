import { randomInt } from "node:crypto";
import { proxyOf } from "@nodeyard/driver";
import { openFile, USUAL_TLS, wireOf } from "@nodeyard/driver/http";
import { textIfExists } from "@nodeyard/runtime";
import { type AzureHost, createAzureDriver } from "../driver.ts";
import { isOfHost } from "../identity.ts";

const { env } = process;
/** What a password needs one of each. */
const KINDS = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"];
const ALL = KINDS.join("");
const LENGTH = 64;

/** Environment, files and network of this host. Files are read at each login, so that changes take effect. */
export const thisHost: AzureHost = {
  around: { env, read: textIfExists },
  connect: () => wireOf(USUAL_TLS, (url) => (isOfHost(url, env) ? null : proxyOf(url, env, "requests"))),
  openFile,
  password() {
    for (;;) {
      const password = Array.from({ length: LENGTH }, () => ALL[randomInt(ALL.length)]).join("");
      if (KINDS.every((kind) => [...kind].some((one) => password.includes(one)))) return password;
    }
  },
};

/** The `azure` driver. */
export const azureDriver = createAzureDriver(thisHost);
