import { spawn } from "node:child_process";
import { once } from "node:events";
import { output } from "./run.ts";

const PORT = 7000;
const WORD = "hello from beyond";
const SERVE = `const [port, word] = process.argv.slice(1);
require("node:net").createServer((s) => s.on("error", () => {}).end(word + "\\n")).listen(port, () => console.log("up"))`;

/** A host beyond this one: a network namespace with a server that sends a word to each connection. Needs root. */
export class Beyond {
  readonly #namespace: string;
  readonly address: string;
  readonly port = PORT;
  readonly word = WORD;
  readonly #end: () => void;

  private constructor(namespace: string, address: string, end: () => void) {
    this.#namespace = namespace;
    this.address = address;
    this.#end = end;
  }

  static async make(): Promise<Beyond> {
    const id = process.pid % 65_536;
    const [namespace, link] = [`nodeyard-qemu-${id}`, `nyq${id}`];
    // Carrier-grade NAT's range: no host's own network.
    const network = `100.64.${id >> 8}`;
    const own = id & 0xff & ~3;
    const ip = (...words: string[]) => output("ip", words);
    await ip("netns", "add", namespace);
    await ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", namespace);
    await ip("addr", "add", `${network}.${own + 1}/30`, "dev", link);
    await ip("link", "set", link, "up");
    await ip("-n", namespace, "addr", "add", `${network}.${own + 2}/30`, "dev", "eth0");
    await ip("-n", namespace, "link", "set", "eth0", "up");
    const words = ["netns", "exec", namespace, process.execPath, "-e", SERVE, String(PORT), WORD];
    const server = spawn("ip", words, { stdio: ["ignore", "pipe", "inherit"] });
    await once(server.stdout, "data");
    return new Beyond(namespace, `${network}.${own + 2}`, () => server.kill());
  }

  async close(): Promise<void> {
    this.#end();
    // Removing its end of the link removes ours too.
    await output("ip", ["netns", "del", this.#namespace]);
  }
}
