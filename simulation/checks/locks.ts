/**
 * Holder of a durable contender: any launcher may act for a lease, and the leader for a metastatic provider; their writes check the
 * record's version.
 */
export const DURABLE = "a lease or a metastatic provider";

/** Whether the client's contender on a node is more than a look: launchers only look, or make the node and delete it. */
export function isUser(client: string): boolean {
  return client === DURABLE || !(client.startsWith("launcher-") || client === "python");
}

interface Contender {
  readonly client: string;
  readonly since: number;
}

/** The contenders for the locks of one kind of record. */
export class Locks {
  readonly #lines = new Map<string, Map<string, Contender>>();

  add(id: string, name: string, client: string, since: number): void {
    const line = this.#lines.get(id) ?? new Map<string, Contender>();
    this.#lines.set(id, line.set(name, { client, since }));
  }

  /** Returns the client that had it. */
  remove(id: string, name: string): string | undefined {
    const line = this.#lines.get(id);
    const client = line?.get(name)?.client;
    line?.delete(name);
    if (line?.size === 0) this.#lines.delete(id);
    return client;
  }

  holder(id: string): string | undefined {
    const line = this.#lines.get(id);
    if (line === undefined) return undefined;
    const [head] = [...line.keys()].sort((a, b) => (a.slice(-10) < b.slice(-10) ? -1 : 1));
    return line.get(head ?? "")?.client;
  }

  /** Records that the client holds or has a contender for. */
  ids(): readonly string[] {
    return [...this.#lines.keys()];
  }

  line(id: string): readonly (Contender & { readonly name: string })[] {
    return [...(this.#lines.get(id) ?? [])].map(([name, contender]) => ({ name, ...contender }));
  }

  /** Ids of the records that this client holds. */
  heldBy(client: string): ReadonlySet<string> {
    return new Set([...this.#lines.keys()].filter((id) => this.holder(id) === client));
  }
}
