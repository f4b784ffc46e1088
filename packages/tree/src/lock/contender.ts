import type { Random } from "@nodeyard/runtime";
import { contenderPrefix, holderOf } from "@nodeyard/zookeeper";
import type { CallOptions, CreateOp, Tree } from "../contract.ts";
import { CommitFailed, NodeExists, NoNode, TreeError } from "../errors.ts";

export interface ContendOptions {
  readonly random: Random;
  /** Data of the contender, for whoever asks who holds the lock; empty by default. */
  readonly identifier?: string;
  /** The contender outlives the session. It then fences nothing by itself, and only `release` ends it. */
  readonly durable?: boolean;
  /**
   * What happens when the lock's parent is missing: "never" rejects with NoNode; "parent-only" creates that one znode,
   * never what is above it, so that the lock of an object which is gone cannot bring its path back.
   */
  readonly createParent?: "never" | "parent-only";
}

export interface Contender {
  readonly path: string;
  readonly epoch: number;
  /** First by construction: the parent came with it. */
  readonly fresh: boolean;
}

/**
 * Joins the line of a lock. The name is fixed before the first attempt, so that after a lost reply our contender is
 * found by it and never made twice. Rejects with NoNode when the object above the parent is gone.
 */
export async function contend(
  tree: Tree,
  parent: string,
  options: ContendOptions,
  call: CallOptions,
): Promise<Contender> {
  const { random, identifier = "", durable = false, createParent = "never" } = options;
  const op: CreateOp = {
    op: "create",
    path: `${parent}/${contenderPrefix(random.uuid())}`,
    data: new TextEncoder().encode(identifier),
    ephemeral: !durable,
    sequential: true,
  };
  for (;;) {
    const { epoch } = tree.session();
    try {
      const [made] = await tree.commit([op], call);
      return { path: made.path, epoch, fresh: false };
    } catch (error) {
      const adopted = await adopt(tree, parent, op.path, error, call);
      if (adopted !== undefined) return { path: adopted, epoch, fresh: false };
      if (isUnknown(error)) continue;
      if (createParent === "never" || !isRefusal(error, NoNode)) throw reasonOf(error);
    }
    try {
      const [, made] = await tree.commit([{ op: "create", path: parent }, op], call);
      return { path: made.path, epoch, fresh: true };
    } catch (error) {
      const adopted = await adopt(tree, parent, op.path, error, call);
      if (adopted !== undefined) return { path: adopted, epoch, fresh: false };
      // Someone made the parent meanwhile: its line is there to be joined.
      if (!isUnknown(error) && !isRefusal(error, NodeExists)) throw reasonOf(error);
    }
  }
}

/** Whether a contender is the first of its line; undefined when it is not in it any more. */
export async function isHead(
  tree: Tree,
  parent: string,
  contender: string,
  call: CallOptions,
): Promise<boolean | undefined> {
  const names = await tree.children(parent, call).catch((error: unknown): readonly string[] => {
    if (error instanceof NoNode) return [];
    throw error;
  });
  const own = contender.slice(parent.length + 1);
  return names.includes(own) ? holderOf(names) === own : undefined;
}

/** Deletes a contender, however often the connection breaks; rejects when the call's own limit ends. */
export async function leave(tree: Tree, contender: string, call: CallOptions): Promise<void> {
  for (;;) {
    try {
      await tree.delete(contender, call);
      return;
    } catch (error) {
      if (error instanceof NoNode) return;
      if (!isLost(error)) throw error;
    }
  }
}

/** After an outcome that nobody knows: the contender that the lost call made, if it did. */
async function adopt(
  tree: Tree,
  parent: string,
  prefix: string,
  error: unknown,
  call: CallOptions,
): Promise<string | undefined> {
  if (!isUnknown(error)) return undefined;
  if (!isLost(error)) {
    // The caller gave up: what may have been made must not stay in the line.
    await sweep(tree, parent, prefix).catch(() => undefined);
    throw error;
  }
  for (;;) {
    try {
      const names = await tree.children(parent, call);
      const name = names.find((child) => `${parent}/${child}`.startsWith(prefix));
      return name === undefined ? undefined : `${parent}/${name}`;
    } catch (failure) {
      if (failure instanceof NoNode) return undefined;
      if (!isLost(failure)) throw failure;
    }
  }
}

async function sweep(tree: Tree, parent: string, prefix: string): Promise<void> {
  const names = await tree.children(parent);
  for (const child of names)
    if (`${parent}/${child}`.startsWith(prefix)) await leave(tree, `${parent}/${child}`, {});
}

function isUnknown(error: unknown): boolean {
  return error instanceof TreeError && error.outcome === "unknown";
}

/** Whether the connection or the session is to blame; the tree heals both by itself, so the call may be made again. */
export function isLost(error: unknown): boolean {
  return (
    error instanceof TreeError &&
    (error.code === "tree.connection_lost" || error.code === "tree.session_expired")
  );
}

function isRefusal(error: unknown, kind: typeof NoNode | typeof NodeExists): boolean {
  return error instanceof CommitFailed && error.reason instanceof kind;
}

function reasonOf(error: unknown): unknown {
  return error instanceof CommitFailed ? error.reason : error;
}
