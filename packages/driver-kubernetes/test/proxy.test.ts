import { expect, test } from "vitest";
import { proxyOf } from "../src/edge/proxy.ts";

const P = "http://proxy:3128";
const SERVER = "https://api.lab.example:6443";

test.each([
  ["upper case", SERVER, { HTTPS_PROXY: P }, P],
  ["lower case", SERVER, { https_proxy: P }, P],
  ["upper before lower", SERVER, { HTTPS_PROXY: P, https_proxy: "http://other" }, P],
  ["without a scheme", SERVER, { HTTPS_PROXY: "proxy:3128" }, P],
  ["of plain HTTP", "http://api.lab.example", { HTTPS_PROXY: "http://other", HTTP_PROXY: P }, P],
  ["none for this host", "https://127.0.0.1:6443", { HTTPS_PROXY: P }, null],
  ["none for its name", "https://localhost:6443", { HTTPS_PROXY: P }, null],
  ["none for all", SERVER, { HTTPS_PROXY: P, NO_PROXY: "*" }, null],
  ["none for a name", SERVER, { HTTPS_PROXY: P, no_proxy: "x, API.lab.example" }, null],
  ["none beneath a domain", SERVER, { HTTPS_PROXY: P, NO_PROXY: "lab.example" }, null],
  ["none beneath a dot", SERVER, { HTTPS_PROXY: P, NO_PROXY: ".lab.example" }, null],
  ["the end of another name", "https://mylab.example", { HTTPS_PROXY: P, NO_PROXY: "lab.example" }, P],
  ["none for its port", SERVER, { HTTPS_PROXY: P, NO_PROXY: "lab.example:6443" }, null],
  ["for another port", SERVER, { HTTPS_PROXY: P, NO_PROXY: "lab.example:443" }, P],
  ["none for a network", "https://10.1.2.3:6443", { HTTPS_PROXY: P, NO_PROXY: "10.0.0.0/8" }, null],
  ["outside of a network", "https://11.1.2.3:6443", { HTTPS_PROXY: P, NO_PROXY: "10.0.0.0/8" }, P],
  ["none for an address", "https://10.1.2.3:6443", { HTTPS_PROXY: P, NO_PROXY: "10.1.2.3" }, null],
  ["none for IPv6", "https://[fd00::1]:6443", { HTTPS_PROXY: P, NO_PROXY: "fd00::/8" }, null],
  ["nonsense in the list", SERVER, { HTTPS_PROXY: P, NO_PROXY: ",1/2,10.0.0.0/99,:" }, P],
])("%s", (_, server, env, proxy) => expect(proxyOf(server, env)).toBe(proxy));
