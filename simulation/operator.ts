import { deleteNode, holdNode, retireNode, retryDeletion } from "@nodeyard/operations";
import { type Clock, NodeyardError, type Random } from "@nodeyard/runtime";
import type { MemoryTree } from "@nodeyard/tree";
import type { LogCheck } from "./checks/index.ts";
import { again } from "./retried.ts";
import { between, pick } from "./streams.ts";

/** Held nodes expire by themselves in the end, seconds. */
const HELD_S = [5, 60] as const;
/** An operator sees a dead letter after this time, milliseconds. */
const READ_MS = [1_000, 30_000] as const;

/** What people do by hand, with the operations of the command line. */
export class Operator {
  /** Nodes that the operator changed: their clients may find them so. */
  readonly touched = new Set<string>();
  /** The cloud is repaired first. */
  onDeadLetter: () => void = () => {};
  readonly #handles: { readonly tree: MemoryTree; readonly clock: Clock; readonly random: Random };
  readonly #check: LogCheck;
  readonly #failed: (error: unknown) => void;
  /** The next node that reaches this state is held. */
  #waitsFor: string | undefined;

  readonly #count: (fault: "operator retries") => void;

  constructor(
    handles: { readonly tree: MemoryTree; readonly clock: Clock; readonly random: Random },
    check: LogCheck,
    count: (fault: "operator retries") => void,
    failed: (error: unknown) => void,
  ) {
    this.#count = count;
    this.#handles = handles;
    this.#check = check;
    this.#failed = failed;
  }

  /** Holds an existing node, or the next one that is used up. */
  hold(): void {
    const { random } = this.#handles;
    if (random.float() < 0.6) this.#waitsFor = random.float() < 0.5 ? "used" : "failed";
    else this.#hold(this.#any(["ready", "in-use", "hold"]));
  }

  delete(): void {
    this.#do(this.#any(["ready", "hold"]), (id) => deleteNode(this.#handles, id));
  }

  /** Retires a backing node. */
  retire(): void {
    const ids = [...this.#check.nodes]
      .filter(([, { data }]) => data.state === "in-use" && String(data.user_data).includes("metastatic"))
      .map(([id]) => id);
    const id = ids.length === 0 ? undefined : pick(this.#handles.random, ids);
    this.#do(id, async (node) => void (await retireNode(this.#handles, node, "by hand")));
  }

  /** A node got a dead letter. */
  read(node: string): void {
    const { clock, random } = this.#handles;
    clock.setTimer(between(random, ...READ_MS), () => {
      this.onDeadLetter();
      this.#count("operator retries");
      again(clock, random, () => retryDeletion(this.#handles, node)).catch(this.#failed);
    });
  }

  /** A node changed its state. */
  see(id: string, state: string | null): void {
    if (state === null || state !== this.#waitsFor || this.#check.nodes.get(id)?.data.provider === "py")
      return;
    // A launcher is nearly always quicker: the next node is tried until one is held, or no run would show it.
    this.#hold(id, () => {
      if (this.#waitsFor === state) this.#waitsFor = undefined;
    });
  }

  #hold(id: string | undefined, held: () => void = () => {}): void {
    const forSeconds = Math.ceil(between(this.#handles.random, ...HELD_S));
    this.#do(id, async (node) => {
      await holdNode(this.#handles, node, { comment: "by hand", forSeconds });
      held();
    });
  }

  #any(states: readonly string[]): string | undefined {
    const ids = [...this.#check.nodes]
      .filter(([, { data }]) => states.includes(String(data.state)) && data.provider !== "py")
      .map(([id]) => id);
    return ids.length === 0 ? undefined : pick(this.#handles.random, ids);
  }

  /** "The node is busy, gone or being deleted" is an answer, no error. */
  #do(id: string | undefined, work: (id: string) => Promise<void>): void {
    if (id === undefined) return;
    this.touched.add(id);
    work(id).catch((error: unknown) => {
      if (!(error instanceof NodeyardError)) this.#failed(error);
    });
  }
}
