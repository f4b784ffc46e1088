import { createReadStream, readFileSync } from "node:fs";
import { proxyOf } from "@nodeyard/driver";
import { wireOf } from "@nodeyard/driver/http";
import { createMeadowDriver } from "../driver.ts";
import type { MeadowHost } from "../provider.ts";

const TLS = { verify: true, ca: null, cert: null, key: null };

const thisHost: MeadowHost = {
  connect: () => wireOf(TLS, (url) => proxyOf(url, process.env, "requests"), 16),
  readFile: (path) => readFileSync(path, "utf8"),
  openFile: (path) => createReadStream(path),
};

export const meadowDriver = createMeadowDriver(thisHost);
