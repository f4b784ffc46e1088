import { spawnSync } from "node:child_process";
import { delimiter, dirname } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
/** A dependency of this folder only for its Node headers; it has the major version of the Node that runs this. */
const HEADERS = `${HERE}node_modules/node-linux-${process.arch}`;
const PEERS = ["node-zookeeper-client", "zookeeper"] as const;

/**
 * Installs the clients that we compare with into this folder and loads each once, in a process of its own. Throws when
 * one is not available: a comparison without its peers proves nothing.
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
  // npm unpacks everything before it compiles the native peer, so the headers are there. On other systems the peer finds headers or a
  // prebuilt binary itself.
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

/** The error when the peer is loaded in a process of its own; undefined if it loads. */
function whyNotLoaded(peer: string): string | undefined {
  const result = spawnSync(process.execPath, ["-e", `require(${JSON.stringify(peer)})`], {
    cwd: HERE,
    encoding: "utf8",
  });
  return result.status === 0 ? undefined : result.stderr;
}
