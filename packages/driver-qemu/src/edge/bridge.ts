import { readFile } from "node:fs/promises";
import { DriverError } from "@nodeyard/driver";
import type { Subnet } from "../machine/bridge.ts";
import {
  bridgeMark,
  bridgeNames,
  bridgeRules,
  hostRules,
  hostTable,
  markedFolder,
  type Port,
  portElement,
  portOf,
} from "../machine/bridge.ts";
import { type Account, run } from "./tools.ts";

/**
 * A bridge in a network namespace of its own, with one link to the host. The machines' programs are in there too: whoever breaks out
 * of one has no network but what the machine had. It stays when the launcher ends, as long as there are machines.
 */
export class Bridge {
  readonly namespace: string;
  readonly #subnet: Subnet;

  private constructor(namespace: string, subnet: Subnet) {
    this.namespace = namespace;
    this.#subnet = subnet;
  }

  /** Makes what is not there. Rejects with kind `configuration` for what the host lacks. */
  static async open(
    folder: string,
    subnet: Subnet,
    network: "restricted" | "outbound",
    signal: AbortSignal,
  ): Promise<Bridge> {
    const forwards = (await readFile("/proc/sys/net/ipv4/ip_forward", "utf8")).trim() === "1";
    if (network === "outbound" && !forwards)
      throw new DriverError(
        "configuration",
        "this host forwards no packets, which outbound over a bridge needs; set net.ipv4.ip_forward=1, or use restricted",
      );
    const { namespace, link } = bridgeNames(folder);
    // Rules first: there is no moment in which a machine is linked and the host is open to it.
    await run("nft", ["-f", "-"], { signal, input: hostRules(link, subnet, network) });
    const { gateway, prefix } = portOf(subnet, 2);
    await named(namespace, signal);
    if (!(await answers(["link", "show", "dev", link], signal))) await linked(namespace, link, signal);
    // Also where a launcher died in between.
    await run("ip", ["-n", namespace, "link", "set", "dev", "uplink", "master", "br0", "up"], { signal });
    const mark = bridgeMark(folder);
    await run("ip", ["link", "set", "dev", link, "up", ...(mark === undefined ? [] : ["alias", mark])], {
      signal,
    });
    await run("ip", ["addr", "replace", `${gateway}/${prefix}`, "dev", link], { signal });
    await run("ip", ["netns", "exec", namespace, "nft", "-f", "-"], { signal, input: bridgeRules() });
    return new Bridge(namespace, subnet);
  }

  /** Folders that bridges of this host are marked with, whoever made them. */
  static async folders(signal: AbortSignal): Promise<readonly string[]> {
    const text = await run("ip", ["-json", "link", "show", "type", "veth"], { signal }).catch((error) => {
      // A host without iproute2 never had one.
      if (error instanceof DriverError && error.kind === "configuration") return "";
      throw error;
    });
    const links = JSON.parse(text.trim() || "[]") as { ifname?: string; ifalias?: string }[];
    return links.flatMap(({ ifname, ifalias }) => {
      const folder = ifalias === undefined ? undefined : markedFolder(ifalias);
      return folder !== undefined && bridgeNames(folder).link === ifname ? [folder] : [];
    });
  }

  /** Takes the folder's bridge away, with the host's rules for it. Not there: nothing. */
  static async remove(folder: string, signal: AbortSignal): Promise<void> {
    const { namespace, link } = bridgeNames(folder);
    await answers(["link", "del", "dev", link], signal);
    await answers(["netns", "del", namespace], signal);
    // Rules last, as they are made first; deleting what is not there is an error, making what is there is none.
    const table = `table ${hostTable(link)}`;
    await run("nft", ["-f", "-"], { signal, input: `${table} {}\ndelete ${table}\n` });
  }

  port(number: number): Port {
    return portOf(this.#subnet, number);
  }

  /** A tap that only the account's QEMU opens, apart from all others: machines see the host, and no other machine. */
  async attach(number: number, account: NonNullable<Account>, signal: AbortSignal): Promise<void> {
    const port = this.port(number);
    await this.detach(number, signal);
    const own = ["user", String(account.uid)];
    await this.#ip(["tuntap", "add", "dev", port.tap, "mode", "tap", ...own], signal);
    await this.#ip(["link", "set", "dev", port.tap, "master", "br0", "up"], signal);
    await run("bridge", ["-n", this.namespace, "link", "set", "dev", port.tap, "isolated", "on"], { signal });
    await this.#element("add", port, signal);
  }

  /** Not there: nothing. */
  async detach(number: number, signal: AbortSignal): Promise<void> {
    const port = this.port(number);
    // Deleting what is not there is an error, adding what is there is none.
    await this.#element("add", port, signal);
    await this.#element("delete", port, signal);
    await answers(["-n", this.namespace, "link", "del", "dev", port.tap], signal);
  }

  #ip(words: readonly string[], signal: AbortSignal): Promise<string> {
    return run("ip", ["-n", this.namespace, ...words], { signal });
  }

  async #element(verb: "add" | "delete", port: Port, signal: AbortSignal): Promise<void> {
    const words = ["netns", "exec", this.namespace, "nft", "-f", "-"];
    await run("ip", words, { signal, input: `${verb} ${portElement(port)}\n` });
  }
}

/** The name alone proves nothing: it stays as an empty file when its namespace was another's mount. */
async function named(namespace: string, signal: AbortSignal): Promise<void> {
  const there = await answers(["-n", namespace, "link", "show", "dev", "lo"], signal);
  if (there) return;
  await answers(["netns", "del", namespace], signal);
  await run("ip", ["netns", "add", namespace], { signal });
}

function answers(words: readonly string[], signal: AbortSignal): Promise<boolean> {
  return run("ip", words, { signal }).then(
    () => true,
    () => false,
  );
}

async function linked(namespace: string, link: string, signal: AbortSignal): Promise<void> {
  await answers(["-n", namespace, "link", "del", "dev", "br0"], signal);
  await run("ip", ["-n", namespace, "link", "add", "br0", "type", "bridge"], { signal });
  await run("ip", ["-n", namespace, "link", "set", "dev", "br0", "up"], { signal });
  const far = ["peer", "name", "uplink", "netns", namespace];
  await run("ip", ["link", "add", link, "type", "veth", ...far], { signal });
}
