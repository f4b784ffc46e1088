import { join } from "node:path";
import { type DriverContext, DriverError, deadline, messageOf } from "@nodeyard/driver";
import type { QemuProviderConfig } from "../config.ts";
import { numbersOf, type Port } from "../machine/bridge.ts";
import { rules } from "../machine/firewall.ts";
import { Bridge } from "./bridge.ts";
import { assertIdsUnused, Numbers } from "./numbers.ts";
import { type Account, run } from "./tools.ts";
import { opened, removeIfUnused, removeUnused } from "./unused-bridges.ts";

/** Time limit of removing a bridge when a provider closes, milliseconds. */
const CLOSE_MS = 20_000;

/** Resources of the host that belong to one machine at a time. */
export interface Allotment {
  /** User id of the machine's processes; absent: all machines of the provider have one. */
  readonly uid?: number;
  /** Number of its port on the bridge; absent: user-mode networking. */
  readonly number?: number;
}

/**
 * User ids and bridge ports of machines. It also closes this host to those users and ports (rule 11). The share of a machine is in
 * its record, so a launcher that starts again frees it with the machine.
 */
export class Allotments {
  readonly bridge: Bridge | null;
  readonly #close: () => Promise<void>;
  readonly #users: Numbers | null;
  readonly #places: Numbers | null;

  private constructor(
    bridge: Bridge | null,
    users: Numbers | null,
    places: Numbers | null,
    close: () => Promise<void> = async () => {},
  ) {
    this.bridge = bridge;
    this.#close = close;
    this.#users = users;
    this.#places = places;
  }

  /** For one that makes no machines. */
  static none(): Allotments {
    return new Allotments(null, null, null);
  }

  /** Rejects with kind `configuration` for what needs root, or a feature that the host lacks. */
  static async open(
    config: QemuProviderConfig,
    account: Account,
    context: DriverContext,
    signal: AbortSignal,
  ): Promise<Allotments> {
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
    if (users !== null) await assertIdsUnused(users);
    if (network === "outbound" && bridge === null)
      await run("nft", ["-f", "-"], { signal, input: rules(account.uid, users) });
    const numbers = users === null ? null : await Numbers.open(join(folder, "users"), users, "users");
    // Bridges of providers that no longer exist and whose launchers were killed.
    const warn = (error: unknown) =>
      context.log.warn(
        { error: messageOf(error) },
        "cannot look for unused bridges; the next start will retry",
      );
    await removeUnused(context, signal, folder).catch(warn);
    if (bridge === null) return new Allotments(null, numbers, null);
    const places = await Numbers.open(join(folder, "places"), numbersOf(bridge), "bridge");
    // Before the bridge is made, so that no other process removes it in between.
    const left = await opened(folder, context, signal);
    const close = async () => {
      await left();
      await inTime(context, (limit) => removeIfUnused(folder, context, limit)).catch(warn);
    };
    try {
      return new Allotments(await Bridge.open(folder, bridge, network, signal), numbers, places, close);
    } catch (error) {
      await close();
      throw error;
    }
  }

  /**
   * Takes a user id and a port for a machine, as far as the provider has them. All or nothing. Rejects with kind "quota" when all
   * are taken. `alive`: whether a machine's folder exists.
   */
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

  /** Frees what a machine had. The port is taken off the bridge before its number can be given to another machine. May be repeated. */
  async free(name: string, { uid, number }: Allotment): Promise<void> {
    if (uid !== undefined) await this.#users?.free(uid, name);
    if (number === undefined) return;
    await this.bridge?.detach(number, new AbortController().signal);
    await this.#places?.free(number, name);
  }

  /** Gives up the folder, and removes its bridge unless another process or a machine uses it. Failures are only logged. */
  async close(): Promise<void> {
    await this.#close();
  }

  /** The machine's port; undefined without a bridge. */
  portOf({ number }: Allotment): Port | undefined {
    return number === undefined ? undefined : this.bridge?.port(number);
  }
}

/** Closing has no signal of a caller, so it gets a time limit of its own. */
async function inTime({ clock }: DriverContext, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const late = () => new DriverError("timeout", `the bridge was not removed within ${CLOSE_MS} ms`);
  using limit = deadline(clock, CLOSE_MS, late);
  await work(limit.signal);
}
