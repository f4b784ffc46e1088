import { join } from "node:path";
import { type DriverContext, DriverError, deadline, messageOf } from "@nodeyard/driver";
import type { QemuProviderConfig } from "../config.ts";
import { numbersOf, type Port } from "../machine/bridge.ts";
import { rules } from "../machine/firewall.ts";
import { Bridge } from "./bridge.ts";
import { assertIdsUnused, Numbers } from "./numbers.ts";
import { type Account, run } from "./tools.ts";
import { opened, removeIfUnused, removeUnused } from "./unused-bridges.ts";

const CLOSE_MS = 20_000;

/** Resources of the host that belong to one machine at a time. */
export interface Allotment {
  readonly uid?: number;
  readonly number?: number;
}

/** User ids and bridge ports of machines. It also closes this host to those users and ports (rule 11). */
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

  async close(): Promise<void> {
    await this.#close();
  }

  portOf({ number }: Allotment): Port | undefined {
    return number === undefined ? undefined : this.bridge?.port(number);
  }
}

/** Closing has no signal of a caller, so it gets a time limit of its own. */
async function inTime({ clock }: DriverContext, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const late = () => new DriverError("timeout", `the bridge was not removed within ${CLOSE_MS} ms`);
  const limit = deadline(clock, CLOSE_MS, late);
  try {
    await work(limit.signal);
  } finally {
    limit.cancel();
  }
}
