import type { Random } from "@nodeyard/runtime";
import { contenderPrefix, holderOf } from "@nodeyard/zookeeper";
import type { CallOptions, CreateOp, Stat, Tree } from "../contract.ts";
import { CommitFailed, NodeExists, NoNode, TreeError } from "../errors.ts";

/** How often an attempt is made again after the connection broke under it. */
const ATTEMPTS = 8;

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

interface Made {
  readonly path: string;
  readonly stat: Stat;
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
  try {
    return await join(tree, parent, op, createParent, call);
  } catch (error) {
    // Whoever gave up while the outcome was open must not leave a contender that blocks the line.
    void sweep(tree, parent, op.path).catch(() => undefined);
    throw error instanceof CommitFailed ? error.reason : error;
  }
}

async function join(
  tree: Tree,
  parent: string,
  op: CreateOp,
  createParent: "never" | "parent-only",
  call: CallOptions,
): Promise<Contender> {
  let withParent = false;
  for (let attempt = 1; ; attempt++) {
    const { epoch } = tree.session();
    try {
      const { path, stat } = await create(tree, withParent ? parent : undefined, op, call);
      return { path, epoch: epochOf(tree, stat, epoch), fresh: withParent };
    } catch (error) {
      if (isUnknown(error)) {
        const adopted = await adopt(tree, parent, op.path, error, call);
        if (adopted !== undefined)
          return { path: adopted.path, epoch: epochOf(tree, adopted.stat, epoch), fresh: false };
      } else if (createParent !== "never" && isRefusal(error, withParent ? NodeExists : NoNode)) {
        // The parent is missing, or someone made it meanwhile and its line is there to be joined.
        withParent = !withParent;
      } else throw error;
      if (attempt >= ATTEMPTS) throw error;
    }
  }
}

async function create(
  tree: Tree,
  parent: string | undefined,
  op: CreateOp,
  call: CallOptions,
): Promise<Made> {
  const ops = parent === undefined ? [op] : [{ op: "create" as const, path: parent }, op];
  return (await tree.commit(ops, call)).at(-1) as Made;
}

/**
 * A call that was made while a session had ended waits for the next one, so the epoch at its start need not be that of the
 * contender; its owner is. Where the session has changed since, `noted` is an earlier epoch, and the lock rightly lost.
 */
function epochOf(tree: Tree, { ephemeralOwner }: Stat, noted: number): number {
  const { id, epoch } = tree.session();
  return ephemeralOwner === id ? epoch : noted;
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

/** Deletes a contender, also over a connection that breaks meanwhile; rejects when the call's own limit ends. */
export async function leave(tree: Tree, contender: string, call: CallOptions): Promise<void> {
  await persist(async () => {
    try {
      await tree.delete(contender, call);
    } catch (error) {
      if (!(error instanceof NoNode)) throw error;
    }
  });
}

/** Repeats what is safe to repeat while the connection is to blame. Calls wait for the next one, which is the back-off. */
export async function persist<T>(action: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await action();
    } catch (error) {
      if (!isLost(error) || attempt >= ATTEMPTS) throw error;
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
): Promise<Made | undefined> {
  // The caller gave up, or the tree is closed: there is nobody to adopt it.
  if (!isLost(error)) throw error;
  const [path] = await persist(() => ownContenders(tree, parent, prefix, call));
  if (path === undefined) return undefined;
  const stat = await persist(() => tree.stat(path, call));
  return stat === undefined ? undefined : { path, stat };
}

async function sweep(tree: Tree, parent: string, prefix: string): Promise<void> {
  const own = await persist(() => ownContenders(tree, parent, prefix, {}));
  for (const path of own) await leave(tree, path, {});
}

async function ownContenders(
  tree: Tree,
  parent: string,
  prefix: string,
  call: CallOptions,
): Promise<string[]> {
  // The connection may be to another server now, which has not carried out yet what the one before was asked for.
  await tree.sync(parent, call);
  try {
    const names = await tree.children(parent, call);
    return names.map((name) => `${parent}/${name}`).filter((path) => path.startsWith(prefix));
  } catch (error) {
    if (error instanceof NoNode) return [];
    throw error;
  }
}

function isUnknown(error: unknown): boolean {
  return error instanceof TreeError && error.outcome === "unknown";
}

/** Whether the connection or the session is to blame; the tree heals both by itself, so the call may be made again. */
function isLost(error: unknown): boolean {
  return (
    error instanceof TreeError &&
    (error.code === "tree.connection_lost" || error.code === "tree.session_expired")
  );
}

function isRefusal(error: unknown, kind: typeof NoNode | typeof NodeExists): boolean {
  return error instanceof CommitFailed && error.reason instanceof kind;
}
