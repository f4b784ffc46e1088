import { defined } from "@nodeyard/runtime";
import { NAME, sshKey } from "@nodeyard/sliver-protocol";
import type { SocketAccount } from "../api/edge/account-sockets.ts";
import type { Caller } from "../core/permit.ts";
import type { State } from "../core/record.ts";
import { ForwarderPathError } from "../errors.ts";
import type { BackEnd } from "../isolation/contract.ts";

/** An account that only makes calls: the launcher's, or a controller of a document. It has no shell and no sliver. */
export interface ControlAccount {
  readonly name: string;
  /** `type base64` each. */
  readonly keys: readonly string[];
}

/**
 * The authorized_keys file of the Unix user that all control accounts share. Each key has a forced command, which names the account;
 * `restrict` forbids forwarding, terminals and the like. A key that two accounts have belongs to the first, because sshd would use only
 * that line. Throws ForwarderPathError, GrammarError.
 */
export function renderAuthorizedKeys(forwarder: string, accounts: readonly ControlAccount[]): string {
  if (!/^\/[A-Za-z0-9._/-]+$/.test(forwarder))
    throw new ForwarderPathError(
      `the forwarder ${JSON.stringify(forwarder)} must be an absolute path of letters, digits and ._/-`,
    );
  const seen = new Set<string>();
  const lines: string[] = [];
  for (const { name, keys } of accounts) {
    if (name !== "control" && !NAME.test(name)) continue;
    for (const key of keys.map(sshKey)) {
      if (seen.has(key)) continue;
      seen.add(key);
      lines.push(`restrict,command="${forwarder} ${name}" ${key}\n`);
    }
  }
  return lines.join("");
}

/**
 * The present accounts with their Unix users: the user that runs the manager (root), the launcher, each sliver with an index, each
 * controller.
 */
export function socketAccounts(
  state: State,
  backEnd: BackEnd,
  ownUid: number,
  controlUid: number,
): SocketAccount[] {
  const fixed: SocketAccount[] = [
    { caller: { account: "root", role: "root", generation: 0 }, uid: ownUid },
    { caller: { account: "control", role: "control", generation: 0 }, uid: controlUid },
  ];
  const named = [...state.records.values()].flatMap(({ name, kind, generation, local }): SocketAccount[] => {
    if (kind === "controller")
      return [{ caller: { account: name, role: "controller", generation }, uid: controlUid }];
    if (local.index === undefined) return [];
    const { index, incarnation } = local;
    const folder = backEnd.socketFolder?.({ index, incarnation });
    const caller = { account: name, role: "sliver", generation } as const;
    return [{ caller, uid: backEnd.account(index).uid, ...defined({ folder }) }];
  });
  return [...fixed, ...named];
}

/** The accounts that may log in. The launcher comes first, so that no document can take over its key. */
export function controlAccounts(state: State, launcherKeys: readonly string[]): ControlAccount[] {
  const controllers = [...state.records.values()].filter(({ kind }) => kind === "controller");
  return [
    { name: "control", keys: launcherKeys },
    ...controllers.map(({ name, keys }) => ({ name, keys })).sort((a, b) => (a.name < b.name ? -1 : 1)),
  ];
}

/** The caller of a token; undefined when its account has ended. */
export function tokenCaller(state: State, account: string, generation: number): Caller | undefined {
  if (account === "root" || account === "control") return { account, role: account, generation: 0 };
  const record = state.records.get(account);
  if (record?.generation !== generation) return undefined;
  return { account, role: record.kind, generation };
}

/** Work that is repeated after changes. */
export interface Latest {
  /** Reports a change. */
  call(): void;
  /** Starts no further run; resolves when the present one has ended. */
  end(): Promise<void>;
}

/**
 * Runs `work` after each change, never twice at the same time. Any number of calls during a run cause one more run after it. `work` must
 * not reject.
 */
export function latest(work: () => Promise<void>): Latest {
  let running: Promise<void> | undefined;
  let again = false;
  let ended = false;
  const run = async (): Promise<void> => {
    do {
      again = false;
      await work();
    } while (again && !ended);
    running = undefined;
  };
  return {
    call: () => {
      if (running !== undefined) again = true;
      else if (!ended) running = run();
    },
    end: async () => {
      ended = true;
      await running;
    },
  };
}
