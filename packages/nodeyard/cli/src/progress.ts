import { plain } from "@nodeyard/operations/listing";
import type { LeaseProgress } from "./follow.ts";

/** Prints the progress of a lease, each line once: what its request waits for, and the steps of each node. */
export class Progress {
  readonly #say: (line: string) => void;
  readonly #elapsedMs: () => number;
  /** The last line of each subject, by its name: a change back and forth is shown, a repetition is not. */
  readonly #shown = new Map<string, string>();

  constructor(say: (line: string) => void, elapsedMs: () => number) {
    this.#say = say;
    this.#elapsedMs = elapsedMs;
  }

  /** Called at each change; prints what is new. */
  show({ lease, request, nodes }: LeaseProgress): void {
    for (const node of nodes.values()) {
      const where = [node.provider, node.pool].filter((name) => name !== null).join("/");
      this.#show(`node ${node.id}`, `${node.state}  ${node.label.join(",")}  ${where}`);
    }
    if (request !== undefined) this.#show(`request ${request.id}`, meaning(request));
    if (lease.state === "gathering")
      this.#show(
        `lease ${lease.id}`,
        (lease.parts ?? []).map(({ label, state }) => `${label} ${PART[state]}`).join(", "),
      );
    // Released is what the command itself does, and says.
    if (lease.state === "granted" || lease.state === "failed") this.#show(`lease ${lease.id}`, lease.state);
  }

  /** A tree that went away is worth a line: everything said before may be old. */
  connection(state: string): void {
    // The first connection is no news.
    if (state === "connected" && !this.#shown.has("connection")) return;
    const text = state === "connected" ? "is back" : "is lost; waiting for it to come back";
    if (state !== "closed") this.#show("connection", text);
  }

  #show(what: string, text: string): void {
    if (this.#shown.get(what) === text) return;
    this.#shown.set(what, text);
    const seconds = (this.#elapsedMs() / 1000).toFixed(1).padStart(7);
    this.#say(`${seconds}s  ${what}  ${plain(text)}\n`);
  }
}

const PART = { held: "is held", asked: "is asked for", next: "comes later" } as const;

/** A request's state for people, with where to look when it waits. */
function meaning({ id, state, declined_by: declinedBy }: NonNullable<LeaseProgress["request"]>): string {
  const declined = declinedBy.length === 0 ? "" : `; declined by ${declinedBy.length} so far`;
  if (state === "requested")
    return `requested  waiting for a pool to take it${declined}; why: nodeyard explain ${id}`;
  if (state === "pending") return `pending  a pool has taken it${declined}`;
  if (state === "failed") return `failed  declined by every pool: ${declinedBy.join(", ")}`;
  return state;
}
