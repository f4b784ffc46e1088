import { readFileSync } from "node:fs";
import { proxyOf } from "@nodeyard/driver";
import { openFile, USUAL_TLS, wireOf } from "@nodeyard/driver/http";
import { createMeadowDriver } from "../driver.ts";

export const meadowDriver = createMeadowDriver({
  connect: () => wireOf(USUAL_TLS, (url) => proxyOf(url, process.env, "requests")),
  readFile: (path) => readFileSync(path, "utf8"),
  openFile,
});
