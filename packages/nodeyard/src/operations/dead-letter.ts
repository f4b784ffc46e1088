import { type OperationHandles, orUndefined } from "./handles.ts";

/** Marks of nodes whose machines could not be deleted in many tries; they are still tried, rarely. */
export const DEAD_LETTERS = "/nodeyard/dead-letters";

export interface DeadLetter {
  /** Id of the node. */
  readonly node: string;
  readonly provider: string | null;
  /** Tries that failed before it was marked. */
  readonly attempts: number;
  /** Tree time, milliseconds, of the first of them that is known. */
  readonly since: number;
  /** The last error. */
  readonly error: string;
}

const VERSION = 1;

export function deadLetterPath(node: string): string {
  return `${DEAD_LETTERS}/${node}`;
}

export function encodeDeadLetter(letter: DeadLetter): Uint8Array {
  return Buffer.from(JSON.stringify({ v: VERSION, ...letter }));
}

/** What is missing or odd in it is left open: that the mark stands says the most. */
export function decodeDeadLetter(node: string, data: Uint8Array): DeadLetter {
  let value: Partial<Record<keyof DeadLetter, unknown>> = {};
  try {
    value = (JSON.parse(Buffer.from(data).toString()) ?? {}) as typeof value;
  } catch {
    // Not JSON: a later release's, or nobody's.
  }
  const { provider, attempts, since, error } = value;
  return {
    node,
    provider: typeof provider === "string" ? provider : null,
    attempts: typeof attempts === "number" ? attempts : 0,
    since: typeof since === "number" ? since : 0,
    error: typeof error === "string" ? error : "",
  };
}

export async function readDeadLetter(
  { tree }: OperationHandles,
  node: string,
): Promise<DeadLetter | undefined> {
  const found = await orUndefined(tree.get(deadLetterPath(node)));
  return found && decodeDeadLetter(node, found.data);
}

/** Nodes that are marked. */
export async function listDeadLetters({ tree }: OperationHandles): Promise<ReadonlySet<string>> {
  return new Set((await orUndefined(tree.children(DEAD_LETTERS))) ?? []);
}

/** Takes the mark away: a launcher that serves the provider then tries at once, as if for the first time. False: there is none. */
export async function retryDeletion({ tree }: OperationHandles, node: string): Promise<boolean> {
  return (await orUndefined(tree.delete(deadLetterPath(node)).then(() => true))) ?? false;
}
