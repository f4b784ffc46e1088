import { expect, test } from "vitest";
import { proxyOf } from "../src/index.ts";

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
])("kubectl: %s", (_, server, env, proxy) => expect(proxyOf(server, env, "client-go")).toBe(proxy));

// What requests 2.34 and botocore 1.44 on Python 3.11 answered to the same.
test.each([
  ["lower before upper", SERVER, { HTTPS_PROXY: "http://other", https_proxy: P }, P, P],
  ["none where lower is empty", SERVER, { HTTPS_PROXY: P, https_proxy: "" }, null, null],
  ["for this host, too", "https://127.0.0.1:6443", { HTTPS_PROXY: P }, P, P],
  ["none for all", SERVER, { HTTPS_PROXY: P, NO_PROXY: "*" }, null, null],
  ["all in a list", SERVER, { HTTPS_PROXY: P, NO_PROXY: "x,*" }, P, P],
  ["none for a name", SERVER, { HTTPS_PROXY: P, no_proxy: "x, API.lab.example" }, null, null],
  [
    "none for the name after a dot",
    "https://lab.example",
    { HTTPS_PROXY: P, NO_PROXY: ".lab.example" },
    null,
    null,
  ],
  ["an asterisk and a dot", SERVER, { HTTPS_PROXY: P, NO_PROXY: "*.lab.example" }, P, P],
  ["the end of another name", "https://mylab.example", { HTTPS_PROXY: P, NO_PROXY: "lab.example" }, P, P],
  ["none for its port", SERVER, { HTTPS_PROXY: P, NO_PROXY: "lab.example:6443" }, null, null],
  ["for another port", SERVER, { HTTPS_PROXY: P, NO_PROXY: "lab.example:443" }, P, P],
  ["none for a network", "https://10.1.2.3:6443", { HTTPS_PROXY: P, NO_PROXY: "10.0.0.0/8" }, null, P],
  ["a network of IPv6", "https://[fd00::1]:6443", { HTTPS_PROXY: P, NO_PROXY: "fd00::/8" }, P, P],
  ["none for an address", "https://10.1.2.3:6443", { HTTPS_PROXY: P, NO_PROXY: "10.1.2.3" }, null, null],
  ["of everything", SERVER, { ALL_PROXY: P }, P, null],
])("Python: %s", (_, server, env, requests, botocore) => {
  expect(proxyOf(server, env, "requests")).toBe(requests);
  expect(proxyOf(server, env, "botocore")).toBe(botocore);
});
