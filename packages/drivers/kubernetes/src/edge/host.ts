import { execFile } from "node:child_process";
import { homedir } from "node:os";
import { proxyOf } from "@nodeyard/driver";
import { wireOf } from "@nodeyard/driver/http";
import { textIfExists } from "@nodeyard/runtime";
import type { KubeHost } from "../cluster.ts";
import { createKubernetesDrivers } from "../driver.ts";

/** Most connections to one API server. Each watch occupies one. */
const CONNECTIONS = 24;

/** This machine's kubeconfig, environment, credential plugins and network. Files are read at each use, so changes take effect. */
export const thisHost: KubeHost = {
  files: {
    env: process.env,
    home: homedir(),
    read: textIfExists,
    proxy: (server) => proxyOf(server, process.env, "client-go"),
    run: ({ command, args, env }, signal) =>
      new Promise((resolve, reject) => {
        // An answer above 1 MiB is no credential. The abort ends the plugin's process.
        const options = { env: { ...process.env, ...env }, signal, maxBuffer: 1 << 20 };
        execFile(command, [...args], options, (error, stdout, stderr) => {
          // The last line of the plugin's errors, which usually names the cause; stdout may contain a token and is not quoted.
          const said = stderr.trim().split("\n").at(-1) ?? "";
          if (error === null) resolve(stdout);
          else reject(new Error(said === "" ? String(error.code ?? error.signal) : said, { cause: error }));
        });
      }),
  },
  connect: (route) => wireOf(route, () => route.proxy, CONNECTIONS),
};

/** The drivers `kubernetes`, `openshift` and `openshiftpods`. They share the connection to a cluster. */
export const [kubernetesDriver, openshiftDriver, openshiftpodsDriver] = createKubernetesDrivers(thisHost);
