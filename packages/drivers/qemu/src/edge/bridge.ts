import { readFile } from "node:fs/promises";
import { DriverError, succeeds } from "@nodeyard/driver";
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
  type Subnet,
} from "../machine/bridge.ts";
import { type Account, run } from "./tools.ts";

/** What `openBridge` opens. */
export type Bridge = Awaited<ReturnType<typeof openBridge>>;

/**
 * A bridge in its own network namespace, with one link to the host. QEMU's processes run in that namespace too, so a process that breaks
 * out of QEMU has only the network of its machine. The bridge outlives the launcher for as long as there are machines. Creates what is
 * missing. Rejects with kind `configuration` when the host lacks a feature.
 */
export async function openBridge(
  folder: string,
  subnet: Subnet,
  network: "restricted" | "outbound",
  signal: AbortSignal,
) {
  const forwards = (await readFile("/proc/sys/net/ipv4/ip_forward", "utf8")).trim() === "1";
  if (network === "outbound" && !forwards)
    throw new DriverError(
      "configuration",
      "this host forwards no packets, which outbound over a bridge needs; set net.ipv4.ip_forward=1, or use restricted",
    );
  const { namespace, link } = bridgeNames(folder);
  // Rules first, so that no machine is linked while the host is open to it.
  await run("nft", ["-f", "-"], { signal, input: hostRules(link, subnet, network) });
  const { gateway, prefix } = portOf(subnet, 2);
  await named(namespace, signal);
  // The link is made last (`linked`), so its presence means that bridge and namespace are there.
  if (!(await answers(["link", "show", "dev", link], signal))) await linked(namespace, link, signal);
  // Also when an earlier launcher died between the steps.
  await run("ip", ["-n", namespace, "link", "set", "dev", "uplink", "master", "br0", "up"], { signal });
  const mark = bridgeMark(folder);
  await run("ip", ["link", "set", "dev", link, "up", ...(mark === undefined ? [] : ["alias", mark])], {
    signal,
  });
  await run("ip", ["addr", "replace", `${gateway}/${prefix}`, "dev", link], { signal });
  await run("ip", ["netns", "exec", namespace, "nft", "-f", "-"], { signal, input: bridgeRules() });

  /** Adds or deletes a port in the set of those that may send (`bridgeRules`). Adding one that is there is no error. */
  async function element(verb: "add" | "delete", port: Port, signal: AbortSignal): Promise<void> {
    const words = ["netns", "exec", namespace, "nft", "-f", "-"];
    await run("ip", words, { signal, input: `${verb} ${portElement(port)}\n` });
  }

  /** Removes a tap. One that does not exist is no error. */
  async function detach(number: number, signal: AbortSignal): Promise<void> {
    const port = portOf(subnet, number);
    // nft fails to delete a missing element but accepts to add an existing one, so add it first.
    await element("add", port, signal);
    await element("delete", port, signal);
    await answers(["-n", namespace, "link", "del", "dev", port.tap], signal);
  }

  return {
    /** Name of the network namespace in which QEMU is started. */
    namespace,
    detach,
    /** Names and addresses of a machine's port. No I/O. */
    port: (number: number): Port => portOf(subnet, number),
    /**
     * Makes a tap that only the account's QEMU may open. Taps are isolated from each other: machines reach the host but no other
     * machine. A tap of an earlier attempt is made anew.
     */
    async attach(number: number, { uid }: NonNullable<Account>, signal: AbortSignal): Promise<void> {
      const port = portOf(subnet, number);
      await detach(number, signal);
      const ip = (...words: string[]) => run("ip", ["-n", namespace, ...words], { signal });
      await ip("tuntap", "add", "dev", port.tap, "mode", "tap", "user", String(uid));
      await ip("link", "set", "dev", port.tap, "master", "br0", "up");
      await run("bridge", ["-n", namespace, "link", "set", "dev", port.tap, "isolated", "on"], { signal });
      await element("add", port, signal);
    },
  };
}

/** Folders named by the marks of all bridges on this host, whichever provider made them. */
export async function bridgeFolders(signal: AbortSignal): Promise<readonly string[]> {
  const text = await run("ip", ["-json", "link", "show", "type", "veth"], { signal }).catch((error) => {
    // Without iproute2 the host never had a bridge.
    if (error instanceof DriverError && error.kind === "configuration") return "";
    throw error;
  });
  const links = JSON.parse(text.trim() || "[]") as { ifname?: string; ifalias?: string }[];
  return links.flatMap(({ ifname, ifalias }) => {
    const folder = ifalias === undefined ? undefined : markedFolder(ifalias);
    return folder !== undefined && bridgeNames(folder).link === ifname ? [folder] : [];
  });
}

/** Removes the bridge of a folder, then the host's rules for it. A bridge that does not exist is no error. */
export async function removeBridge(folder: string, signal: AbortSignal): Promise<void> {
  const { namespace, link } = bridgeNames(folder);
  await answers(["link", "del", "dev", link], signal);
  await answers(["netns", "del", namespace], signal);
  // Rules are removed last, as they are made first. nft fails to delete a missing table but accepts to add an existing one, so add it
  // first.
  const table = `table ${hostTable(link)}`;
  await run("nft", ["-f", "-"], { signal, input: `${table} {}\ndelete ${table}\n` });
}

/** Makes the namespace. Its name alone proves nothing: it remains as an empty file when its mount belonged to another mount namespace. */
async function named(namespace: string, signal: AbortSignal): Promise<void> {
  if (await answers(["-n", namespace, "link", "show", "dev", "lo"], signal)) return;
  await answers(["netns", "del", namespace], signal);
  await run("ip", ["netns", "add", namespace], { signal });
}

/** Whether `ip` succeeds: tells whether something exists, or removes something that may not exist. */
function answers(words: readonly string[], signal: AbortSignal): Promise<boolean> {
  return succeeds(run("ip", words, { signal }));
}

/** Makes the bridge and its link. A bridge without a link is from a launcher that died in between, and is made anew. */
async function linked(namespace: string, link: string, signal: AbortSignal): Promise<void> {
  await answers(["-n", namespace, "link", "del", "dev", "br0"], signal);
  await run("ip", ["-n", namespace, "link", "add", "br0", "type", "bridge"], { signal });
  await run("ip", ["-n", namespace, "link", "set", "dev", "br0", "up"], { signal });
  const far = ["peer", "name", "uplink", "netns", namespace];
  await run("ip", ["link", "add", link, "type", "veth", ...far], { signal });
}
