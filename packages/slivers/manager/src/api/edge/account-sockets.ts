import { chmod, chown, lstat, mkdir, readdir, rename, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Gate } from "@nodeyard/runtime";
import type { Caller } from "../../core/permit.ts";
import type { AccountServer } from "./http-server.ts";

/** An account, and the user of this machine whose processes may call for it. */
export interface SocketAccount {
  readonly caller: Caller;
  readonly uid: number;
  /** Folder of its socket, for a sliver that sees it from inside; absent: below the folder of all sockets. */
  readonly folder?: string;
}

const SOCKET = "api.sock";

interface Listening {
  readonly account: SocketAccount;
  readonly server: AccountServer;
}

/**
 * One listening socket per account. The socket of a call determines the caller. Only the account's user can open its socket, which is in a
 * folder that only root can write. A sliver gets the folder, not the socket, so that a new socket after a restart is visible to it. The
 * back end makes that folder before the sliver starts, and removes it with the sliver.
 */
export class AccountSockets {
  readonly #folder: string;
  readonly #serverOf: (caller: Caller) => AccountServer;
  /** By account, as of the last `apply`. */
  readonly #listening = new Map<string, Listening>();
  /** Numbers drafts, so that two never have one name. */
  #count = 0;
  readonly #turn = new Gate(1);

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

  /** Removes what an earlier process left, and makes the folder. Its parent must belong to root. */
  async prepare(): Promise<void> {
    await rm(this.#drafts, { recursive: true, force: true });
    await this.#makeFolders();
    for (const name of await readdir(this.#folder)) {
      if (name.startsWith(".") || !(await isThere(this.#path(name), "isSocket"))) continue;
      await this.#forget(name);
    }
  }

  /**
   * Listens for exactly these accounts, except those whose folder does not exist yet. A removed socket is made again. Concurrent calls run
   * one after another. Tries all accounts, then rejects with the first failure.
   */
  apply(accounts: readonly SocketAccount[]): Promise<void> {
    return this.#turn.run(() => this.#apply(accounts));
  }

  async close(): Promise<void> {
    await this.apply([]);
    await rm(this.#drafts, { recursive: true, force: true });
  }

  async #makeFolders(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o755 });
    // chmod, because the umask may be stricter, and accounts must be able to enter.
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
      // A broken sliver that was created again has a new folder at the same path, without a socket.
      const isListening = await isThere(this.#place(listening.account), "isSocket");
      if (isListening && next !== undefined && isDeepStrictEqual(next, listening.account)) continue;
      this.#listening.delete(name);
      await attempt(this.#end(listening));
    }
    // A failure for one sliver must not prevent the others from calling.
    for (const [name, account] of wanted)
      if (!this.#listening.has(name)) await attempt(this.#listen(name, account));
    if (failures.length > 0) throw failures[0];
  }

  /** Makes the socket in a private folder, sets its owner, and renames it into place, so that it never has wrong permissions. */
  async #listen(name: string, account: SocketAccount): Promise<void> {
    const { folder, uid } = account;
    const drafts = folder === undefined ? this.#drafts : `${folder}.new`;
    // An operator may have removed the folders; make them again.
    if (folder === undefined) await this.#makeFolders();
    else {
      if (!(await isThere(folder, "isDirectory"))) return;
      // Next to the folder, because rename(2) does not cross file systems.
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
      // The group too: root of a sliver, in its user namespace, can open only files whose owner and group are mapped.
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

  /** The socket goes first, so that nobody connects to a server that is being closed. */
  async #end({ account, server }: Listening): Promise<void> {
    const { folder, caller } = account;
    if (folder === undefined) await this.#forget(caller.account);
    else await rm(this.#place(account), { force: true });
    // Open connections belong to an account that has ended.
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  /** Removes a socket below the folder of all sockets. */
  async #forget(name: string): Promise<void> {
    await rm(this.#path(name), { force: true });
    // The folder stays when root has put other files into it.
    await rmdir(join(this.#folder, name)).catch(() => undefined);
  }
}

async function isThere(path: string, kind: "isSocket" | "isDirectory"): Promise<boolean> {
  return lstat(path).then(
    (found) => found[kind](),
    () => false,
  );
}
