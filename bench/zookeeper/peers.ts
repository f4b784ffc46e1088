import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const HEADERS = fileURLToPath(
  new URL(`../../node_modules/node/node_modules/node-linux-${process.arch}`, import.meta.url),
);
const PEERS = ["node-zookeeper-client", "zookeeper"] as const;

/**
 * Installs the clients that we compare with into this folder and loads each once, in a process of its own. Throws when
 * one cannot be had: a bench without its peers proves nothing.
 */
export function installPeers(): void {
  if (!PEERS.every(loads)) install();
  for (const peer of PEERS) {
    if (!loads(peer)) throw new Error(`bench/zookeeper: the peer ${peer} was installed but does not load`);
  }
}

function install(): void {
  // The native peer is compiled for the Node that runs this, whose headers come with the npm package `node`.
  const headers = existsSync(`${HEADERS}/include/node/node.h`) ? { npm_config_nodedir: HEADERS } : {};
  const path = [dirname(process.execPath), process.env.PATH].join(delimiter);
  const result = spawnSync(
    "npm",
    ["ci", "--no-audit", "--no-fund", "--workspaces=false", "--foreground-scripts"],
    {
      cwd: HERE,
      env: { ...process.env, ...headers, PATH: path },
      encoding: "utf8",
    },
  );
  if (result.status !== 0) {
    throw new Error(
      `bench/zookeeper: the peers do not install (a C compiler and make are needed):\n${result.stdout}${result.stderr}`,
    );
  }
}

function loads(peer: string): boolean {
  try {
    createRequire(import.meta.url).resolve(peer);
  } catch {
    return false;
  }
  return spawnSync(process.execPath, ["-e", `require(${JSON.stringify(peer)})`], { cwd: HERE }).status === 0;
}
