import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { patient } from "../patience.ts";
import type { OpenstackSite } from "./site.ts";

const run = promisify(execFile);

/** The output of OpenStack's own Python client, as a check that does not depend on our code or records. */
export async function openstackCli<T>(site: OpenstackSite, ...words: readonly string[]): Promise<T> {
  const env = { PATH: "/usr/bin:/bin", HOME: site.folder, OS_CLIENT_CONFIG_FILE: site.cloudsYaml };
  const reported = await run("/usr/bin/openstack", ["--os-cloud", "nodeyard", ...words, "-f", "json"], {
    env,
    timeout: patient(120_000),
    maxBuffer: 10_000_000,
  });
  return JSON.parse(reported.stdout) as T;
}
