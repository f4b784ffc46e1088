import { randomInt } from "node:crypto";
import { createReadStream } from "node:fs";
import { proxyOf } from "@nodeyard/driver";
import { wireOf } from "@nodeyard/driver/http";
import { textIfExists } from "@nodeyard/runtime";
import { type AzureHost, createAzureDriver } from "../driver.ts";

const CONNECTIONS = 16;
/** Bytes per read of an upload. */
const CHUNK = 1 << 20;
const TLS = { verify: true, ca: null, cert: null, key: null };
/** What a password needs one of each. */
const KINDS = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"];
const ALL = KINDS.join("");
const LENGTH = 64;

/** Environment, files and network of this host. Files are read at each login, so that changes take effect. */
export const thisHost: AzureHost = {
  around: { env: process.env, read: textIfExists },
  // The metadata service is on the machine's own link, where no proxy is.
  connect: () =>
    wireOf(
      TLS,
      (url) => (new URL(url).hostname === "169.254.169.254" ? null : proxyOf(url, process.env, "requests")),
      CONNECTIONS,
    ),
  openFile: (path) => createReadStream(path, { highWaterMark: CHUNK }),
  password() {
    for (;;) {
      const password = Array.from({ length: LENGTH }, () => ALL[randomInt(ALL.length)]).join("");
      if (KINDS.every((kind) => [...kind].some((one) => password.includes(one)))) return password;
    }
  },
};

/** The `azure` driver. */
export const azureDriver = createAzureDriver(thisHost);
