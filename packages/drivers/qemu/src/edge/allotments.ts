import { join } from "node:path";
import { type DriverContext, DriverError, deadline, defined, messageOf } from "@nodeyard/driver";
import type { QemuProviderConfig } from "../config.ts";
import { numbersOf, type Port } from "../machine/bridge.ts";
import { rules } from "../machine/firewall.ts";
import { type Bridge, openBridge } from "./bridge.ts";
import { assertIdsUnused, type IsAlive, type Numbers, openNumbers } from "./numbers.ts";
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

/** What `openAllotments` opens. */
export type Allotments = ReturnType<typeof allotmentsOf>;

/**
 * User ids and bridge ports of machines. It also closes this host to those users and ports (rule 11). The share of a machine is in
 * its record, so a launcher that starts again frees it with the machine. Rejects with kind `configuration` for what needs root, or a feature
 * that the host lacks.
 */
export async function openAllotments(
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
    return allotmentsOf({});
  }
  if (users !== null) await assertIdsUnused(users);
  if (network === "outbound" && bridge === null)
    await run("nft", ["-f", "-"], { signal, input: rules(account.uid, users) });
  const shared = users === null ? {} : { users: await openNumbers(join(folder, "users"), users, "users") };
  // Bridges of providers that no longer exist and whose launchers were killed.
  const warn = (error: unknown) =>
    context.log.warn(
      { error: messageOf(error) },
      "cannot look for unused bridges; the next start will retry",
    );
  await removeUnused(context, signal, folder).catch(warn);
  if (bridge === null) return allotmentsOf(shared);
  const places = await openNumbers(join(folder, "places"), numbersOf(bridge), "bridge");
  // Before the bridge is made, so that no other process removes it in between.
  const left = await opened(folder, context, signal);
  const close = async () => {
    await left();
    // Closing has no signal of a caller, so it gets a time limit of its own.
    const late = () => new DriverError("timeout", `the bridge was not removed within ${CLOSE_MS} ms`);
    using limit = deadline(context.clock, CLOSE_MS, late);
    await removeIfUnused(folder, context, limit.signal).catch(warn);
  };
  try {
    return allotmentsOf({
      ...shared,
      bridge: await openBridge(folder, bridge, network, signal),
      places,
      close,
    });
  } catch (error) {
    await close();
    throw error;
  }
}

/** Of a provider that has some of these; of one that makes no machines, none. */
export function allotmentsOf({
  bridge = null,
  users,
  places,
  close = async () => {},
}: {
  readonly bridge?: Bridge | null;
  readonly users?: Numbers;
  readonly places?: Numbers;
  readonly close?: () => Promise<void>;
}) {
  /** Frees what a machine had. The port is taken off the bridge before its number can be given to another machine. May be repeated. */
  async function free(name: string, { uid, number }: Allotment): Promise<void> {
    if (uid !== undefined) await users?.free(uid, name);
    if (number === undefined) return;
    await bridge?.detach(number, new AbortController().signal);
    await places?.free(number, name);
  }

  return {
    bridge,
    free,
    /**
     * Takes a user id and a port for a machine, as far as the provider has them. All or nothing. Rejects with kind "quota" when all
     * are taken. `alive`: whether a machine's folder exists.
     */
    async take(name: string, alive: IsAlive, now: number): Promise<Allotment> {
      const uid = defined({ uid: await users?.take(name, alive, now) });
      try {
        return { ...uid, ...defined({ number: await places?.take(name, alive, now) }) };
      } catch (error) {
        await free(name, uid);
        throw error;
      }
    },
    /** Gives up the folder, and removes its bridge unless another process or a machine uses it. Failures are only logged. */
    close,
    /** The machine's port; undefined without a bridge. */
    portOf({ number }: Allotment): Port | undefined {
      return number === undefined ? undefined : bridge?.port(number);
    },
  };
}
