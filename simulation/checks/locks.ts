/**
 * Holder of a durable contender: any launcher may act for a lease, and for a metastatic provider who owns it; what they write checks
 * the record's version.
 */
export const DURABLE = "a lease or a metastatic provider";

/** Whoever stands in a node's line for more than a look: launchers only look, or make the node and clear it away. */
export function isUser(client: string): boolean {
  return client === DURABLE || !(client.startsWith("launcher-") || client === "python");
}

interface Contender {
  readonly client: string;
  readonly since: number;
}

/** Who stands in line for the locks of one kind of record. */
export class Locks {
  readonly #lines = new Map<string, Map<string, Contender>>();

  add(id: string, name: string, client: string, since: number): void {
    const line = this.#lines.get(id) ?? new Map<string, Contender>();
    this.#lines.set(id, line.set(name, { client, since }));
  }

  /** Returns whose it was. */
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

  /** What somebody has, or stands in line for. */
  ids(): readonly string[] {
    return [...this.#lines.keys()];
  }

  line(id: string): readonly (Contender & { readonly name: string })[] {
    return [...(this.#lines.get(id) ?? [])].map(([name, contender]) => ({ name, ...contender }));
  }

  /** Ids of what this client holds. */
  heldBy(client: string): ReadonlySet<string> {
    return new Set([...this.#lines.keys()].filter((id) => this.holder(id) === client));
  }
}
