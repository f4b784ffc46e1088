import { readFileSync } from "node:fs";
import { resolveCloud } from "../../src/clouds/index.ts";

// What this driver reads of the clouds.yaml and secure.yaml in a folder, in the form of testing/cloud-files/judge.py. argv: folder, cloud.

const [folder = "", name = ""] = process.argv.slice(2);
const read = (path: string) => (path.startsWith(`${folder}/`) ? readFileSync(path, "utf8") : undefined);
const env = {
  OS_CLIENT_CONFIG_FILE: `${folder}/clouds.yaml`,
  OS_CLIENT_SECURE_FILE: `${folder}/secure.yaml`,
};
const { credential, tls, networks } = resolveCloud(
  { cloud: name, region: null },
  { env, cwd: "/", home: "/", read },
);
const { username, password, project_name } = credential.values;
const said = {
  default: networks.find((network) => network.defaultInterface)?.name ?? null,
  nat_destination: networks.find((network) => network.natDestination)?.name ?? null,
  nat_source: networks.find((network) => network.natSource)?.name ?? null,
  password,
  project_name,
  username,
  verify: tls.verify,
};
process.stdout.write(`${JSON.stringify(said)}\n`);
