import { type Clock, deadline, messageOf, NodeyardError } from "@nodeyard/runtime";
import { ensurePath, orUndefined, type Tree } from "@nodeyard/tree";
import { type About, ANSWERS, type Answer, ASKS, decodeAnswer, encodeAsk, MEMBERS } from "./records.ts";

/** A member without a usable answer, with the reason. */
export interface Silent {
  readonly member: string;
  readonly why: string;
}

/** What members answered in time, and which of them did not. */
export interface MemberAnswers {
  readonly answers: readonly Answer[];
  readonly silent: readonly Silent[];
}

/**
 * Asks all live members, and waits until all have answered or `withinMs` milliseconds have passed. Question and answers are znodes, so
 * that members need no listener. Without members nothing is written. Never rejects: an error becomes the reason of missing answers.
 * After an answer that `isEnough` nobody is waited for any more.
 */
export async function askMembers(
  { tree, clock }: { readonly tree: Tree; readonly clock: Clock },
  about: About,
  withinMs: number,
  isEnough: (answer: Answer) => boolean = () => false,
): Promise<MemberAnswers> {
  let members: readonly string[] = [];
  try {
    members = (await orUndefined(tree.children(MEMBERS))) ?? [];
    if (members.length === 0) return { answers: [], silent: [] };
    await Promise.all([ensurePath(tree, ASKS), ensurePath(tree, ANSWERS)]);
    const data = encodeAsk({ about, withinMs });
    const { path } = await tree.create(`${ASKS}/`, data, { ephemeral: true, sequential: true });
    try {
      return await collect({ tree, clock }, path.slice(ASKS.length + 1), members, { withinMs, isEnough });
    } finally {
      await tree.delete(path).catch(() => {});
    }
  } catch (error) {
    const why = `it could not be asked: ${messageOf(error)}`;
    return { answers: [], silent: [...members].sort().map((member) => ({ member, why })) };
  }
}

/** Waits for answers below ANSWERS by a feed, and deletes those that came. */
async function collect(
  { tree, clock }: { readonly tree: Tree; readonly clock: Clock },
  ask: string,
  members: readonly string[],
  { withinMs, isEnough }: { readonly withinMs: number; readonly isEnough: (answer: Answer) => boolean },
): Promise<MemberAnswers> {
  const prefix = `${ANSWERS}/${ask}-`;
  const replies = new Map<string, Uint8Array>();
  const { promise: all, resolve } = Promise.withResolvers<void>();
  using limit = deadline(clock, withinMs, () => new NodeyardError("asking.late", "not all members answered"));
  // The deadline ends the wait like a complete set of answers: what has come by then is the result.
  limit.signal.addEventListener("abort", () => resolve());
  // Answers to other questions lie in the same folder, and are not read.
  const feed = tree.feed(ANSWERS, {
    interest: (path) => (path.startsWith(prefix) ? "data" : "none"),
    descend: (path) => path === ANSWERS,
    onChange(change) {
      if (change.type !== "put" || change.data === undefined) return;
      replies.set(change.path.slice(prefix.length), change.data);
      const answer = answerIn(change.data);
      if (members.every((member) => replies.has(member)) || (answer && isEnough(answer))) resolve();
    },
  });
  feed.synced.catch(() => {});
  try {
    await all;
  } finally {
    // Closed before the answers are deleted, so that their removal causes no reads.
    await feed.close().catch(() => {});
    await Promise.all([...replies.keys()].map((member) => tree.delete(prefix + member).catch(() => {})));
  }
  return read(replies, members, withinMs);
}

/** Sorts members by name into those with an answer and those without. */
function read(
  replies: ReadonlyMap<string, Uint8Array>,
  members: readonly string[],
  withinMs: number,
): MemberAnswers {
  const answers: Answer[] = [];
  const silent: Silent[] = [];
  // A member that registered later may have answered, too.
  for (const member of [...new Set([...members, ...replies.keys()])].sort()) {
    const data = replies.get(member);
    if (data === undefined) {
      silent.push({ member, why: `no answer within ${withinMs / 1_000} s` });
      continue;
    }
    const answer = answerIn(data);
    if (answer === undefined)
      silent.push({ member, why: "its answer cannot be read; it may run another release" });
    else answers.push(answer);
  }
  return { answers, silent };
}

/** Undefined for an answer of a release that writes another form. */
function answerIn(data: Uint8Array): Answer | undefined {
  try {
    return decodeAnswer(data);
  } catch {
    return undefined;
  }
}
