import { chmod, chown, lstat, mkdir, readdir, rename, rm, rmdir } from "node:fs/promises";
import type { Server } from "node:http";
import { join } from "node:path";
import type { Caller } from "../../core/index.ts";
import type { Handler } from "../handler.ts";
import { httpServer } from "./http-server.ts";

/** An account, and the user on this machine whose processes may speak for it. */
export interface SocketAccount {
  readonly caller: Caller;
  readonly uid: number;
}

interface Listening {
  readonly account: SocketAccount;
  readonly server: Server;
}

/**
 * One listening socket per account: which one a call comes in on is who calls. The socket is its user's alone, in a
 * folder that only root may write; a sliver gets its folder, not its socket, so that a restart reaches it.
 */
export class AccountSockets {
  readonly #folder: string;
  readonly #handler: Handler;
  readonly #listening = new Map<string, Listening>();
  #count = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(folder: string, handler: Handler) {
    this.#folder = folder;
    this.#handler = handler;
  }

  path(account: string): string {
    return join(this.#folder, account, "api.sock");
  }

  /** Removes what a process before left, and makes the folder ready. Its parent must be root's. */
  async prepare(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o755 });
    // Under any umask: accounts must be able to enter.
    await chmod(this.#folder, 0o755);
    await rm(this.#drafts, { recursive: true, force: true });
    await mkdir(this.#drafts, { mode: 0o700 });
    for (const name of await readdir(this.#folder)) {
      if (name.startsWith(".") || !(await isSocket(this.path(name)))) continue;
      await this.#forget(name);
    }
  }

  /** Listens for exactly these. Calls are carried out one after another. */
  apply(accounts: readonly SocketAccount[]): Promise<void> {
    const run = this.#last.then(() => this.#apply(accounts));
    this.#last = run.catch(() => undefined);
    return run;
  }

  async close(): Promise<void> {
    await this.apply([]);
    await rm(this.#drafts, { recursive: true, force: true });
  }

  get #drafts(): string {
    return join(this.#folder, ".new");
  }

  async #apply(accounts: readonly SocketAccount[]): Promise<void> {
    const wanted = new Map(accounts.map((one) => [one.caller.account, one]));
    for (const [name, { account, server }] of this.#listening) {
      const next = wanted.get(name);
      if (next !== undefined && same(next, account)) continue;
      this.#listening.delete(name);
      await this.#forget(name);
      // What was connected spoke for an account that is no more.
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    for (const [name, account] of wanted) if (!this.#listening.has(name)) await this.#listen(name, account);
  }

  /** Made and given away where nobody else may look, then put in its place: there is no moment with wrong rights. */
  async #listen(name: string, account: SocketAccount): Promise<void> {
    const draft = join(this.#drafts, String(++this.#count));
    const server = httpServer(this.#handler, () => account.caller);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(draft, resolve);
    });
    try {
      await chmod(draft, 0o600);
      await chown(draft, account.uid, -1);
      await mkdir(join(this.#folder, name), { recursive: true, mode: 0o755 });
      await chmod(join(this.#folder, name), 0o755);
      await rename(draft, this.path(name));
    } catch (error) {
      server.close();
      throw error;
    }
    this.#listening.set(name, { account, server });
  }

  async #forget(name: string): Promise<void> {
    await rm(this.path(name), { force: true });
    // Not when somebody keeps something there; nobody but root can.
    await rmdir(join(this.#folder, name)).catch(() => undefined);
  }
}

function same(a: SocketAccount, b: SocketAccount): boolean {
  const { account, role, generation } = a.caller;
  return (
    a.uid === b.uid &&
    account === b.caller.account &&
    role === b.caller.role &&
    generation === b.caller.generation
  );
}

async function isSocket(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSocket();
  } catch {
    return false;
  }
}
