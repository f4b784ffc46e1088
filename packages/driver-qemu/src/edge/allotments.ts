import { join } from "node:path";
import { DriverError } from "@nodeyard/driver";
import { numbersOf, type Port } from "../machine/bridge.ts";
import { rules } from "../machine/firewall.ts";
import type { QemuProviderConfig } from "../own.ts";
import { Bridge } from "./bridge.ts";
import { Numbers, nobodys } from "./numbers.ts";
import { type Account, run } from "./tools.ts";

/** What a machine has of the host that no other has at the same time. */
export interface Allotment {
  readonly uid?: number;
  readonly number?: number;
}

/** Users and places on the bridge, and that this host is closed to those who have them. */
export class Allotments {
  readonly bridge: Bridge | null;
  readonly #users: Numbers | null;
  readonly #places: Numbers | null;

  private constructor(bridge: Bridge | null, users: Numbers | null, places: Numbers | null) {
    this.bridge = bridge;
    this.#users = users;
    this.#places = places;
  }

  /** Rejects with kind `configuration` for what a launcher that is not root cannot have, or the host has not. */
  static async open(config: QemuProviderConfig, account: Account, signal: AbortSignal): Promise<Allotments> {
    const { folder, users, bridge, network } = config.own;
    const refused = (what: string, why: string) =>
      new DriverError("configuration", `${what} needs root, ${why}, or run as root`);
    if (account === null) {
      if (users !== null) throw refused("users", "to run each machine as one of them; leave it out");
      if (bridge !== null) throw refused("bridge", "for its network namespace; leave it out");
      if (network === "outbound")
        throw refused("network outbound", "for rules that close this host to its guests; use restricted");
      return new Allotments(null, null, null);
    }
    if (users !== null) await nobodys(users);
    if (network === "outbound" && bridge === null)
      await run("nft", ["-f", "-"], { signal, input: rules(account.uid, users) });
    return new Allotments(
      bridge === null ? null : await Bridge.open(folder, bridge, network, signal),
      users === null ? null : await Numbers.open(join(folder, "users"), users, "users"),
      bridge === null ? null : await Numbers.open(join(folder, "places"), numbersOf(bridge), "bridge"),
    );
  }

  async take(name: string, alive: (name: string) => Promise<boolean>, now: number): Promise<Allotment> {
    const uid = await this.#users?.take(name, alive, now);
    try {
      const number = await this.#places?.take(name, alive, now);
      return { ...(uid === undefined ? {} : { uid }), ...(number === undefined ? {} : { number }) };
    } catch (error) {
      await this.free(name, uid === undefined ? {} : { uid });
      throw error;
    }
  }

  async free(name: string, { uid, number }: Allotment): Promise<void> {
    if (uid !== undefined) await this.#users?.free(uid, name);
    if (number === undefined) return;
    await this.bridge?.detach(number, new AbortController().signal);
    await this.#places?.free(number, name);
  }

  portOf({ number }: Allotment): Port | undefined {
    return number === undefined ? undefined : this.bridge?.port(number);
  }
}
