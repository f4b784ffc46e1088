import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const NAMESPACE = "ny-world";
/** The host's interface towards it. */
export const WORLD_DEVICE = "ny-w0";
/** Of the range for measuring networks (RFC 2544): what looks like documentation is somebody's mirror somewhere. */
export const HOST = "198.18.219.1";
export const WORLD = "198.18.219.2";
/** Of the range for measuring networks (RFC 5180). */
export const HOST6 = "2001:2:0:219::1";
export const WORLD6 = "2001:2:0:219::2";
/** Takes all that is sent, and keeps connections open. */
export const SINK = 7000;
/** Sends as much as it can. */
export const SOURCE = 7001;

export interface WorldCount {
  /** Connections to the sink that were open at the same time, at most. */
  readonly open: number;
  /** Bytes that the sink got. */
  readonly bytes: number;
  /** Who came. */
  readonly peers: readonly string[];
}

export interface World {
  count(): WorldCount;
  stop(): void;
}

const serverOf = (sinkAt: string) => `
const net = require("node:net");
const count = { open: 0, bytes: 0, peers: [] };
let now = 0;
net.createServer((socket) => {
  now += 1;
  count.open = Math.max(count.open, now);
  const peer = socket.remoteAddress.replace("::ffff:", "");
  if (!count.peers.includes(peer)) count.peers.push(peer);
  socket.on("data", (data) => { count.bytes += data.length; });
  socket.on("error", () => undefined);
  socket.on("close", () => { now -= 1; });
}).listen(${SINK}, "${sinkAt}");
net.createServer((socket) => {
  const send = () => { while (socket.writable && socket.write(Buffer.alloc(65536))); };
  socket.on("drain", send).on("error", () => undefined);
  send();
}).listen(${SOURCE}, "${WORLD}", () => setInterval(() => console.log(JSON.stringify(count)), 50));
`;

/** Another machine, in a network namespace: what slivers may reach is proven from its side. */
export async function startWorld(ipv6 = false): Promise<World> {
  const ip = (...args: string[]) => execFileSync("ip", args);
  ip("netns", "add", NAMESPACE);
  ip("link", "add", WORLD_DEVICE, "type", "veth", "peer", "name", "w0", "netns", NAMESPACE);
  // No address but ours, whose routes would come a second later.
  ip("link", "set", WORLD_DEVICE, "addrgenmode", "none");
  writeFileSync(`/proc/sys/net/ipv6/conf/${WORLD_DEVICE}/disable_ipv6`, ipv6 ? "0" : "1");
  ip("address", "add", `${HOST}/24`, "dev", WORLD_DEVICE);
  if (ipv6) {
    ip("address", "add", `${HOST6}/64`, "dev", WORLD_DEVICE, "nodad");
    ip("-n", NAMESPACE, "address", "add", `${WORLD6}/64`, "dev", "w0", "nodad");
  }
  ip("link", "set", WORLD_DEVICE, "up");
  ip("-n", NAMESPACE, "address", "add", `${WORLD}/24`, "dev", "w0");
  ip("-n", NAMESPACE, "link", "set", "w0", "up");
  ip("-n", NAMESPACE, "link", "set", "lo", "up");
  const server: ChildProcess = spawn(
    "ip",
    ["netns", "exec", NAMESPACE, process.execPath, "-e", serverOf(ipv6 ? "::" : WORLD)],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  let last: WorldCount = { open: 0, bytes: 0, peers: [] };
  await new Promise<void>((resolve, reject) => {
    server.once("exit", (code) => reject(new Error(`the world ended with ${code}`)));
    createInterface(server.stdout!).on("line", (line) => {
      last = JSON.parse(line) as WorldCount;
      resolve();
    });
  });
  return {
    count: () => last,
    stop: () => {
      server.kill("SIGKILL");
      ip("link", "del", WORLD_DEVICE);
      ip("netns", "del", NAMESPACE);
    },
  };
}
