import type { ControlAccount } from "../accounts/index.ts";
import type { SocketAccount } from "../api/index.ts";
import type { Caller, State } from "../core/index.ts";
import type { BackEnd } from "../isolation/index.ts";

/**
 * Who may call now, and as which Unix user: whoever runs the manager (root), the launcher, each sliver that has a place,
 * each controller.
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
    return [{ caller, uid: backEnd.account(index).uid, ...(folder === undefined ? {} : { folder }) }];
  });
  return [...fixed, ...named];
}

/** Who may log in to call: the launcher first, so that no document can take its key. */
export function controlAccounts(state: State, launcherKeys: readonly string[]): ControlAccount[] {
  const controllers = [...state.records.values()].filter(({ kind }) => kind === "controller");
  return [
    { name: "control", keys: launcherKeys },
    ...controllers.map(({ name, keys }) => ({ name, keys })).sort((a, b) => (a.name < b.name ? -1 : 1)),
  ];
}

/** Whom a token stands for now: nobody, once the account it was made for has ended. */
export function tokenCaller(state: State, account: string, generation: number): Caller | undefined {
  if (account === "root" || account === "control") return { account, role: account, generation: 0 };
  const record = state.records.get(account);
  if (record?.generation !== generation) return undefined;
  return { account, role: record.kind, generation };
}
