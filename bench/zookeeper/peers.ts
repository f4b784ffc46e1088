import { spawnSync } from "node:child_process";
import { delimiter, dirname } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
/** Carries the headers of the Node that runs this; a dependency of this folder for nothing else, of the same major version. */
const HEADERS = `${HERE}node_modules/node-linux-${process.arch}`;
const PEERS = ["node-zookeeper-client", "zookeeper"] as const;

/**
 * Installs the clients that we compare with into this folder and loads each once, in a process of its own. Throws when
 * one cannot be had: a bench without its peers proves nothing.
 */
export function installPeers(): void {
  if (PEERS.some((peer) => whyNotLoaded(peer) !== undefined)) install();
  for (const peer of PEERS) {
    const why = whyNotLoaded(peer);
    if (why !== undefined) {
      throw new Error(`bench/zookeeper: the peer ${peer} was installed but does not load:\n${why}`);
    }
  }
}

function install(): void {
  // npm unpacks everything before it compiles the native peer. Elsewhere that finds headers or a prebuilt binary itself.
  const headers = process.platform === "linux" ? { npm_config_nodedir: HEADERS } : {};
  const path = [dirname(process.execPath), process.env.PATH].join(delimiter);
  const result = spawnSync(
    "npm",
    ["ci", "--no-audit", "--no-fund", "--workspaces=false", "--foreground-scripts"],
    {
      cwd: HERE,
      env: { ...process.env, ...headers, PATH: path },
      encoding: "utf8",
      maxBuffer: 64 << 20,
    },
  );
  if (result.status !== 0) {
    throw new Error(
      `bench/zookeeper: the peers do not install (a C compiler and make are needed):\n${result.error ?? ""}${result.stdout}${result.stderr}`,
    );
  }
}

/** What Node says when it loads the peer in a process of its own; undefined when all is well. */
function whyNotLoaded(peer: string): string | undefined {
  const result = spawnSync(process.execPath, ["-e", `require(${JSON.stringify(peer)})`], {
    cwd: HERE,
    encoding: "utf8",
  });
  return result.status === 0 ? undefined : result.stderr;
}
