import { chmod, chown, lstat, mkdir, readdir, rename, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Caller } from "../../core/permit.ts";
import { inTurn } from "../../in-turn.ts";
import type { AccountServer } from "./http-server.ts";

/** An account, and the user on this machine whose processes may speak for it. */
export interface SocketAccount {
  readonly caller: Caller;
  readonly uid: number;
  /** Where its socket is, when a sliver sees it from inside; absent: below the folder of all sockets. */
  readonly folder?: string;
}

const SOCKET = "api.sock";

interface Listening {
  readonly account: SocketAccount;
  readonly server: AccountServer;
}

/**
 * One listening socket per account: which one a call comes in on is who calls. The socket is its user's alone, in a
 * folder that only root may write; a sliver gets its folder, not its socket, so that a restart reaches it. That folder
 * is the back end's, made before the sliver starts and removed with it.
 */
export class AccountSockets {
  readonly #folder: string;
  readonly #serverOf: (caller: Caller) => AccountServer;
  readonly #listening = new Map<string, Listening>();
  #count = 0;
  readonly #turn = inTurn();

  constructor(folder: string, serverOf: (caller: Caller) => AccountServer) {
    this.#folder = folder;
    this.#serverOf = serverOf;
  }

  #path(account: string): string {
    return join(this.#folder, account, SOCKET);
  }

  #place({ caller, folder }: SocketAccount): string {
    return folder === undefined ? this.#path(caller.account) : join(folder, SOCKET);
  }

  /** Removes what a process before left, and makes the folder ready. Its parent must be root's. */
  async prepare(): Promise<void> {
    await rm(this.#drafts, { recursive: true, force: true });
    await this.#makeFolders();
    for (const name of await readdir(this.#folder)) {
      if (name.startsWith(".") || !(await isThere(this.#path(name), "isSocket"))) continue;
      await this.#forget(name);
    }
  }

  /**
   * Listens for exactly these, except those whose folder does not exist yet; again where a socket was removed. Calls
   * are carried out one after another. Rejects with the first failure after it has tried all.
   */
  apply(accounts: readonly SocketAccount[]): Promise<void> {
    return this.#turn(() => this.#apply(accounts));
  }

  async close(): Promise<void> {
    await this.apply([]);
    await rm(this.#drafts, { recursive: true, force: true });
  }

  async #makeFolders(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o755 });
    // Under any umask: accounts must be able to enter.
    await chmod(this.#folder, 0o755);
    await mkdir(this.#drafts, { recursive: true, mode: 0o700 });
  }

  get #drafts(): string {
    return join(this.#folder, ".new");
  }

  async #apply(accounts: readonly SocketAccount[]): Promise<void> {
    const wanted = new Map(accounts.map((one) => [one.caller.account, one]));
    const failures: unknown[] = [];
    const attempt = (work: Promise<void>) => work.catch((error) => void failures.push(error));
    for (const [name, listening] of this.#listening) {
      const next = wanted.get(name);
      // A broken sliver that was created again has a new folder at the old path, without a socket.
      const heard = await isThere(this.#place(listening.account), "isSocket");
      if (heard && next !== undefined && isDeepStrictEqual(next, listening.account)) continue;
      this.#listening.delete(name);
      await attempt(this.#end(listening));
    }
    // A failure for one sliver must not keep the others from calling.
    for (const [name, account] of wanted)
      if (!this.#listening.has(name)) await attempt(this.#listen(name, account));
    if (failures.length > 0) throw failures[0];
  }

  /** Made and given its owner in a private folder, then renamed into place: at no moment has it wrong permissions. */
  async #listen(name: string, account: SocketAccount): Promise<void> {
    const { folder, uid } = account;
    const drafts = folder === undefined ? this.#drafts : `${folder}.new`;
    // The folders may have been removed; they are made again, as sockets are.
    if (folder === undefined) await this.#makeFolders();
    else {
      if (!(await isThere(folder, "isDirectory"))) return;
      // Beside it, since a socket cannot move to another file system.
      await rm(drafts, { recursive: true, force: true });
      await mkdir(drafts, { mode: 0o700 });
    }
    const draft = join(drafts, String(++this.#count));
    const server = this.#serverOf(account.caller);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(draft, resolve);
    });
    try {
      await chmod(draft, 0o600);
      // Of its group too: root of a sliver may open only what is its sliver's wholly.
      await chown(draft, uid, folder === undefined ? -1 : uid);
      if (folder === undefined) {
        await mkdir(join(this.#folder, name), { recursive: true, mode: 0o755 });
        await chmod(join(this.#folder, name), 0o755);
      }
      await rename(draft, this.#place(account));
    } catch (error) {
      server.close();
      throw error;
    } finally {
      if (folder !== undefined) await rm(drafts, { recursive: true, force: true });
    }
    this.#listening.set(name, { account, server });
  }

  async #end({ account, server }: Listening): Promise<void> {
    const { folder, caller } = account;
    if (folder === undefined) await this.#forget(caller.account);
    else await rm(this.#place(account), { force: true });
    // Open connections spoke for an account that has ended.
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  async #forget(name: string): Promise<void> {
    await rm(this.#path(name), { force: true });
    // It stays when root put other files there.
    await rmdir(join(this.#folder, name)).catch(() => undefined);
  }
}

async function isThere(path: string, kind: "isSocket" | "isDirectory"): Promise<boolean> {
  return lstat(path).then(
    (found) => found[kind](),
    () => false,
  );
}
