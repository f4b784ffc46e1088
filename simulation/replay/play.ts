import type { AppliedWrite, Op, OpResult, Stat, Tree } from "@nodeyard/tree";
import { CommitFailed, TreeError } from "@nodeyard/tree";

/** The writes of one client that were applied one after the other, or the end of its session. */
interface Turn {
  readonly session: bigint;
  readonly client: string;
  readonly commits: readonly (readonly Op[])[];
  readonly ends: boolean;
}

/**
 * Carries out the applied writes of a simulated run on another store, and returns one line for each answer: created path, version and
 * counters, or the code of the refusal. Two stores that behave alike give the same lines. Each session of the run becomes a session of its
 * own, opened at its first write and closed where it ended. Consecutive writes of one client are sent without waiting for answers, as
 * launchers send them. A commit that can only be refused a second time is sent twice: refusals must be equal as well.
 */
export async function play(
  history: readonly AppliedWrite[],
  connect: (client: string) => Promise<Tree>,
): Promise<readonly string[]> {
  const trees = new Map<bigint, Tree>();
  const lines: string[] = [];
  try {
    for (const { session, client, commits, ends } of turnsOf(history)) {
      const tree = trees.get(session) ?? (await connect(client));
      trees.set(session, tree);
      if (ends) {
        trees.delete(session);
        await tree.close();
        lines.push(`${client} ends`);
      }
      const twice = commits.flatMap((ops) => (isRefusedTwice(ops) ? [ops, ops] : [ops]));
      const answers = await Promise.all(twice.map((ops) => answerTo(tree, ops)));
      for (const answer of answers) lines.push(`${client}: ${answer}`);
    }
  } finally {
    await Promise.all([...trees.values()].map((tree) => tree.close()));
  }
  return lines;
}

/** Everything below `root`: `path version data`, sorted. */
export async function dump(tree: Tree, root: string): Promise<readonly string[]> {
  const found: string[] = [];
  const visit = async (path: string): Promise<void> => {
    const { data, stat } = await tree.get(path);
    found.push(`${path} ${stat.version} ${Buffer.from(data).toString("hex")}`);
    await Promise.all((await tree.children(path)).map((name) => visit(`${path}/${name}`)));
  };
  if ((await tree.stat(root)) !== undefined) await visit(root);
  return found.sort();
}

function turnsOf(history: readonly AppliedWrite[]): readonly Turn[] {
  const turns: (Turn & { commits: (readonly Op[])[] })[] = [];
  for (const { session, client, ops, sessionEnd } of history) {
    const last = turns.at(-1);
    if (sessionEnd === true) turns.push({ session, client, commits: [], ends: true });
    else if (last?.session === session && !last.ends) last.commits.push(ops);
    else turns.push({ session, client, commits: [ops], ends: false });
  }
  return turns;
}

/** Whether one of its operations cannot be carried out again: its version has moved, its znode exists or is gone. */
function isRefusedTwice(ops: readonly Op[]): boolean {
  return ops.some(
    (op) =>
      (op.op === "set" && op.version !== undefined) ||
      op.op === "delete" ||
      (op.op === "create" && op.sequential !== true),
  );
}

async function answerTo(tree: Tree, ops: readonly Op[]): Promise<string> {
  const own = tree.session().id;
  try {
    const results: readonly OpResult[] = await tree.commit(ops);
    return results.map((result) => resultText(result, own)).join(", ");
  } catch (error) {
    if (!(error instanceof TreeError)) throw error;
    const reason = error instanceof CommitFailed ? `${error.index} ${error.reason.code}` : `0 ${error.code}`;
    return `refused: ${reason}`;
  }
}

function resultText(result: OpResult, own: bigint): string {
  if (result.op === "create") return `create ${result.path} ${counters(result.stat, own)}`;
  return result.op === "set" ? `set ${counters(result.stat, own)}` : result.op;
}

/** The parts that do not depend on the store's own clock and numbering. */
function counters(stat: Stat, own: bigint): string {
  const { version, cversion, dataLength, numChildren, ephemeralOwner } = stat;
  const owner = ephemeralOwner === 0n ? "durable" : ephemeralOwner === own ? "own" : "another's";
  return `v${version} c${cversion} ${dataLength}b ${numChildren} ${owner}`;
}
