import {
  costBetween,
  costOf,
  type DeadLetter,
  isSuspended,
  leaseIdOf,
  metastaticProviderOf,
  type NodeRecord,
  offeringTypeOf,
  paths,
  priceOf,
  RecordError,
  readableNode,
  reuseOf,
} from "@nodeyard/model";
import { defined } from "@nodeyard/runtime";
import { orUndefined, treeNow } from "@nodeyard/tree";
import { readDeadLetter } from "../dead-letter.ts";
import type { OperationHandles } from "../handles.ts";
import { readNode } from "../listing.ts";
import { LEFT_MS } from "../retire-backing.ts";
import { fromTree, goneStory, type MemberReplies, type QueryMembers, replyParts } from "./member-replies.ts";
import { iso, isoOf } from "./reason.ts";
import { type SlotFacts, slotAbout, slotFacts } from "./slot-facts.ts";
import { type LifeStep, lifeOf } from "./steps.ts";
import type { ReportedHistory as History, Story, Wait } from "./story.ts";
import { lockHolder, type RegisteredPool, registeredPools } from "./tree-facts.ts";

/**
 * The explanation of a node; undefined when neither the tree nor a journal knows the id. The reason of its wait comes from its record
 * and its lock; launchers that work on it add steps and remarks.
 */
export async function nodeStory(
  handles: OperationHandles,
  id: string,
  query: QueryMembers,
): Promise<Story | undefined> {
  const { tree } = handles;
  const [found, pools, holder, letter] = await Promise.all([
    readNode(handles, id).catch(unreadable),
    registeredPools(tree),
    lockHolder(tree, paths.nodeLock(id)),
    readDeadLetter(handles, id),
  ]);
  if (found instanceof RecordError) return unreadableStory(handles, id, found, holder, query);
  const record = found;
  // Its request, too: what happened to that explains the node.
  const replies = await query({ node: id, request: record?.allocatedTo ?? undefined });
  const { history } = replies;
  const steps = stepsOf(id, replies);
  // `max-hold-age` is configured per launcher, and the first launcher whose time is over deletes the node.
  const limits = replies.asked.answers.map(
    ({ testimony }) => testimony.maxHoldAgeMs ?? Number.POSITIVE_INFINITY,
  );
  if (record === undefined) return endedStory(id, replies, steps);
  const elsewhere = replies.asked.answers.find(({ testimony }) => testimony.elsewhere !== undefined);
  const since = isoOf(record.stateTime);
  const slots = await slotFacts(handles, record);
  return {
    kind: "node",
    id,
    state: record.state,
    since,
    about: {
      label: record.type,
      provider: record.provider,
      pool: record.pool,
      server_id: record.externalId,
      launcher: record.launcher,
      allocated_to: record.allocatedTo,
      lease: leaseIdOf(holder) ?? null,
      locked_by: holder,
      comment: record.comment,
      ...defined({ offering: offeringTypeOf(record) }),
      ...costIn(record, treeNow(handles)),
      ...remarksIn(replies),
      ...slotAbout(slots),
    },
    ...(elsewhere !== undefined && record.state !== "in-use"
      ? strayed(record, elsewhere.testimony.elsewhere!)
      : letter === undefined || record.state !== "deleting"
        ? situationOf(record, holder, pools, { history, steps, maxHoldMs: Math.min(...limits) }, since, slots)
        : stuck(record, letter)),
    ...replyParts(replies),
    // What pools say concerns the request, and is shown with it.
    pools: [],
    estimate: null,
    steps,
  };
}

/** The price per hour, and the cost since the record was made; the machine itself is a moment younger. */
function costIn(record: NodeRecord, now: number): { readonly cost?: object } {
  const price = priceOf(record);
  if (price === undefined) return {};
  const cost = record.createdTime === null ? null : costBetween(price, record.createdTime * 1_000, now);
  const soFar = cost === null ? null : Number(cost.toPrecision(4));
  return { cost: { ...costOf(price), so_far: soFar } };
}

/** Remarks on the machine as it is now; remarks from its end are part of the history. */
function remarksIn({ asked }: MemberReplies): { readonly remarks?: readonly string[] } {
  const remarks = asked.answers.flatMap(({ testimony }) => testimony.remarks ?? []);
  return remarks.length === 0 ? {} : { remarks };
}

/** For `catch`: a record that cannot be read is explained as such. */
function unreadable(error: unknown): RecordError {
  if (error instanceof RecordError) return error;
  throw error;
}

/** The readable fields of an unreadable node, and what waits until it is repaired or removed. */
async function unreadableStory(
  handles: OperationHandles,
  id: string,
  error: RecordError,
  holder: string | null,
  query: QueryMembers,
): Promise<Story> {
  const [data, replies] = await Promise.all([
    orUndefined(handles.tree.get(paths.node(id))),
    query({ node: id }),
  ]);
  const known = readableNode(data?.data ?? new Uint8Array());
  return {
    kind: "node",
    id,
    state: "unreadable",
    since: null,
    about: {
      label: known.type ?? null,
      provider: known.provider ?? null,
      pool: known.pool ?? null,
      server_id: known.externalId ?? null,
      allocated_to: known.allocatedTo ?? null,
      locked_by: holder,
    },
    waits_for: fromTree(
      "node.unreadable",
      "Its record cannot be read. It is treated as existing: its machine stays, its host is not offered, limits count it, and leak sweeps of its provider delete nothing",
      { error: error.message },
    ),
    next: `Repair the record, or remove it: nodeyard delete ${id}. Then its machine has no record, and leak sweeps delete it.`,
    ...replyParts(replies),
    pools: [],
    estimate: null,
    steps: stepsOf(id, replies),
  };
}

/** The node's life in steps, from the journals and from the launchers that work on it now. */
function stepsOf(id: string, { asked, history }: MemberReplies): readonly LifeStep[] {
  const underWay = asked.answers.flatMap(({ testimony }) => testimony.underWay);
  return lifeOf(
    history.events.filter(({ node }) => node === id),
    underWay.filter(({ node }) => node === id),
  );
}

/** The situation of a node whose machine cannot be deleted: an operator has to help. */
function stuck({ id, provider }: NodeRecord, letter: DeadLetter): Pick<Story, "waits_for" | "next"> {
  const { attempts, error, since } = letter;
  return {
    waits_for: fromTree(
      "node.dead-letter",
      "Many tries to delete its machine failed; limits still count it, and the deletion is retried twice an hour",
      { attempts, error },
      iso(since),
    ),
    next: `Find out what keeps ${provider} from deleting it, then: nodeyard delete ${id} --now`,
  };
}

/** The situation of a node that its provider does not see: it is neither given out nor taken for gone. */
function strayed(
  { id, provider }: NodeRecord,
  { place, now }: { readonly place: string; readonly now: string },
): Pick<Story, "waits_for" | "next"> {
  const meaning =
    "Its machine is where its provider does not work any more: it is not given out, and cannot be deleted";
  return {
    waits_for: fromTree("node.elsewhere", meaning, { place, provider_works_in: now }),
    next: `Put the settings of ${provider} for ${place} back until it is gone, then: nodeyard delete ${id} --now`,
  };
}

/** What the node waits for and what happens next, by its state. */
function situationOf(
  record: NodeRecord,
  holder: string | null,
  pools: readonly RegisteredPool[],
  {
    history,
    steps,
    maxHoldMs,
  }: {
    readonly history: History;
    readonly steps: readonly LifeStep[];
    /** The shortest `max-hold-age` of the launchers that answered; Infinity: none has one. */
    readonly maxHoldMs: number;
  },
  since: string | null,
  slots: SlotFacts | undefined,
): Pick<Story, "waits_for" | "next"> {
  const wait = (code: string, meaning: string, facts?: Wait["facts"]) =>
    fromTree(code, meaning, facts, since);
  const { state, provider } = record;
  const served = pools.some((pool) => pool.providerName === provider);
  const deletion = served ? "A launcher deletes the machine, then the record." : unserved(provider, slots);
  const lost = lastOf(history, record.id, "node.delete-failed");

  switch (state) {
    case "init":
    case "building":
    case "testing": {
      if (holder === null)
        return { waits_for: wait("node.orphaned", "The launcher that made it is gone"), next: deletion };
      if (reuseOf(record)?.checking)
        return {
          waits_for: wait(
            "node.checking",
            "A program finds out whether it may be used again",
            stepNow(steps),
          ),
          next: "If it passes it is ready again; otherwise it is deleted.",
        };
      if (slots?.kind === "waits") {
        const requests = slots.requests.map(({ id }) => id);
        return {
          waits_for: wait("node.waits-for-slot", "Every backing node is full; another one was asked for", {
            requests,
          }),
          next: `When one of them is delivered it gets a slot there. See: nodeyard explain ${requests[0]}`,
        };
      }
      const failed = { ...stepNow(steps), ...lastOf(history, record.id, "node.launch-failed") };
      return {
        waits_for: wait("node.launching", "The provider is making it, or it does not answer yet", failed),
        next: "When it answers it becomes ready; if the last attempt fails, it is deleted.",
      };
    }
    case "ready":
      if (record.allocatedTo === null) {
        const what = record.type.join(" or ");
        const offered = pools.some(
          (pool) =>
            pool.providerName === provider &&
            record.type.some((label) => pool.supportedLabels.includes(label)),
        );
        return {
          waits_for: null,
          next: offered
            ? `It is free: the next request ${ofUser(record)}for ${what} gets it.`
            : `No pool of ${provider} offers ${what} at present: it is kept until one does, until max-ready-age, or: nodeyard delete ${record.id}`,
        };
      }
      return {
        waits_for: wait(
          "node.handed-over",
          "It is allocated to a request whose requestor has not locked it yet",
        ),
        next: `If request ${record.allocatedTo} ends without using it, it is free again.`,
      };
    case "in-use":
      if (holder === null) return { waits_for: wait("node.abandoned", "Its user is gone"), next: deletion };
      if (slots?.kind === "carries") return carrierOf(slots, pools, wait);
      return {
        waits_for: null,
        next: `${userOf(holder)} uses it${usesOf(record)}. Once returned, it is deleted, or offered again if static${reuseOf(record) ? " or found good by the check of its label" : ""}.`,
      };
    case "hold":
      return heldUntil(record, maxHoldMs, wait);
    default:
      return {
        waits_for: wait(
          holder === null ? "node.to-delete" : "node.locked",
          holder === null ? goesTo(record) : `It is to be deleted, and ${holder} still has its lock`,
          { ...stepNow(steps), ...lost },
        ),
        next: deletion,
      };
  }
}

/** Who alone may have a node that was used before: "of tenant t1 and client zuul ". */
function ofUser(record: NodeRecord): string {
  const only = reuseOf(record)?.only;
  return only == null ? "" : `of tenant ${only.tenant ?? "-"} and client ${only.client} `;
}

/** What is next for a node that nobody has. */
function goesTo(record: NodeRecord): string {
  return record.state === "used" && reuseOf(record) !== undefined
    ? "It is to be checked for another use, or deleted"
    : "It is to be deleted";
}

/** Which use of a node it is, from the second on. */
function usesOf(record: NodeRecord): string {
  const { times = 0 } = reuseOf(record) ?? {};
  return times === 0 ? "" : ` (use ${times + 1} of its machine)`;
}

/** A launcher deletes it at its own expiry or at `max-hold-age`, whichever comes first (scheduler/node-due.ts). */
function heldUntil(
  record: NodeRecord,
  maxHoldMs: number,
  wait: (code: string, meaning: string, facts: Wait["facts"]) => Wait,
): Pick<Story, "waits_for" | "next"> {
  const { id, comment, holdExpiration, stateTime } = record;
  const own = (holdExpiration ?? 0) > 0 ? holdExpiration! : Number.POSITIVE_INFINITY;
  const most = maxHoldMs / 1000;
  const until = Math.min(own, most);
  const by = most < own ? " (max-hold-age)" : "";
  const at = stateTime === null ? `${until} s after it was held` : `at ${isoOf(stateTime + until)}`;
  const facts = { comment, hold_seconds: Number.isFinite(until) ? until : null };
  return {
    waits_for: isSuspended(record)
      ? wait("node.suspended", "It is a suspended spare: a request for its label wakes it", facts)
      : wait("node.held", "A person or an autohold keeps it", facts),
    next: Number.isFinite(until)
      ? `It is deleted ${at}${by}, or now with: nodeyard delete ${id}`
      : `It is kept without an end, until somebody deletes it: nodeyard delete ${id}`,
  };
}

/** What happens to a node that is to be deleted while no launcher serves its provider. */
function unserved(provider: string | null, slots: SlotFacts | undefined): string {
  if (slots?.kind === "slot" && slots.claimed) return afterLeaving(provider);
  return `Nothing, until a launcher that serves ${provider} is registered: none is now.`;
}

/** The situation of a backing node: it is in use as long as it carries slots. */
function carrierOf(
  { data: { label, failed, owner }, claimed }: Extract<SlotFacts, { kind: "carries" }>,
  pools: readonly RegisteredPool[],
  wait: (code: string, meaning: string, facts: Wait["facts"]) => Wait,
): Pick<Story, "waits_for" | "next"> {
  const provider = metastaticProviderOf(owner) ?? null;
  if (!pools.some(({ providerName }) => providerName === provider)) {
    const next = claimed
      ? `${afterLeaving(provider)} It goes when its last slot is returned.`
      : `Nothing: a launcher that is not Nodeyard's gave out its slots, and may come back. To return it, add ${provider} to the configuration of a Nodeyard launcher and remove it again.`;
    const meaning = "No launcher serves the provider whose slots it carries";
    return { waits_for: wait("node.unserved", meaning, { provider }), next };
  }
  const next = failed
    ? "It gets no new slots; when the last one is returned, it is deleted."
    : "When it has been empty for longer than grace-time, it is deleted.";
  return { waits_for: null, next: `Provider ${provider} gives out ${label} on it. ${next}` };
}

/** What happens to slots and backing nodes that a launcher left behind. */
function afterLeaving(provider: string | null): string {
  return `When nobody has served ${provider} for ${LEFT_MS / 60_000} minutes, a running Nodeyard launcher deletes what it left.`;
}

/** The error and time of the node's last event of a kind, as facts. */
function lastOf({ events }: History, id: string, name: string): Readonly<Record<string, unknown>> {
  const found = events.findLast(({ event, node }) => event === name && node === id);
  return found === undefined ? {} : { last_error: found.facts.error, at: found.at };
}

/** What a launcher is doing with it at this moment. */
function stepNow(steps: readonly LifeStep[]): Readonly<Record<string, unknown>> {
  const now = steps.findLast(({ seconds, of }) => seconds === null && of !== "life");
  return now === undefined ? {} : { step: now.step, attempt: now.attempt, step_since: now.began };
}

/** The user of a node in words, by what the lock's holder stored. */
function userOf(holder: string): string {
  const lease = leaseIdOf(holder);
  return lease === undefined ? holder : `The owner of lease ${lease}`;
}

/** The explanation of a node that is gone, from the journals alone. */
function endedStory(id: string, replies: MemberReplies, steps: readonly LifeStep[]): Story | undefined {
  const { events } = replies.history;
  if (events.length === 0) return undefined;
  const made = events.find(({ event, node }) => event === "node.created" && node === id)?.facts;
  const about = { label: made?.label ?? null, provider: made?.provider ?? null, pool: made?.pool ?? null };
  return goneStory({ kind: "node", id, about, next: "Its machine and its record are gone." }, replies, steps);
}
