import {
  decodeRequest,
  type Lease,
  leaseRequestor,
  nodesOfLease,
  partOf,
  partRows,
  paths,
} from "@nodeyard/model";
import { isBefore } from "@nodeyard/scheduler";
import { treeNow } from "@nodeyard/tree";
import type { OperationHandles } from "../handles.ts";
import { listLeases, readLease, readNode } from "../listing.ts";
import { fromTree, goneStory, type QueryMembers, replyParts } from "./member-replies.ts";
import { failureOf, requestStory } from "./request-story.ts";
import type { Story } from "./story.ts";
import { costFacts, nodeFacts, readEach, registeredPools } from "./tree-facts.ts";

/** The explanation of a lease, which is mostly that of its request. Undefined when neither the tree nor the journal knows it. */
export async function leaseStory(
  handles: OperationHandles,
  id: string,
  query: QueryMembers,
): Promise<Story | undefined> {
  const lease = await readLease(handles, id);
  if (lease === undefined) return endedStory(id, query);
  const request = lease.request ?? (await requestOfPart(handles, lease));
  const replies = await query({ lease: id, request });
  // Members have been asked about both. The lease waits for what its request waits for.
  const story = request === undefined ? undefined : await requestStory(handles, request, async () => replies);
  const nodes = await Promise.all(nodesOfLease(lease).map((node) => readNode(handles, node)));
  const there = nodes.filter((node) => node !== undefined);
  const launchers = (await registeredPools(handles.tree)).length;
  const now = treeNow(handles);
  const situation =
    lease.state === "gathering" && launchers > 0 && lease.expires > now
      ? await gatheringOf(handles, lease, story)
      : situationOf(lease, story, launchers > 0, now);
  return {
    kind: "lease",
    id,
    state: lease.state,
    since: null,
    about: {
      created: new Date(lease.created).toISOString(),
      labels: lease.labels,
      owner: lease.owner,
      job: lease.job,
      expires: new Date(lease.expires).toISOString(),
      request: request ?? null,
      request_state: story?.state ?? null,
      ...(lease.set !== null && { parts: partRows(lease.set), same: lease.set.same }),
      failed_because: lease.state === "failed" ? (lease.why ?? failureOf(replies.history)) : null,
      nodes: there.map(nodeFacts),
      ...costFacts(there, now),
    },
    ...situation,
    ...replyParts(replies),
    steps: story?.steps ?? [],
  };
}

/** The explanation of the lease that is, or was last, for a job of a CI. Undefined when neither the tree nor a journal knows one. */
export async function jobStory(
  handles: OperationHandles,
  id: string,
  query: QueryMembers,
): Promise<Story | undefined> {
  const { items } = await listLeases(handles);
  const mine = items.filter(({ job }) => job?.id === id).sort((a, b) => a.created - b.created);
  const found = mine.at(-1)?.id ?? (await query({ job: id })).history.events.at(-1)?.facts.lease;
  return typeof found === "string" ? leaseStory(handles, found, query) : undefined;
}

/** What the lease waits for, by its state; the clock may have ended it before a launcher has. */
function situationOf(
  lease: Lease,
  request: Story | undefined,
  served: boolean,
  now: number,
): Pick<Story, "waits_for" | "next"> {
  const until = new Date(lease.expires).toISOString();
  // Only launchers change leases: without one, nothing below would happen.
  if (!served)
    return {
      waits_for: fromTree("pools.none", "No launcher has registered a pool", { expires: until }),
      next: "Nothing, until a launcher runs: launchers grant and end leases.",
    };
  if (lease.expires <= now || lease.state === "released")
    return {
      waits_for: fromTree("lease.ending", "It was released or has expired; its nodes are being returned"),
      next: "A launcher marks its nodes as used and deletes the lease, usually within a second.",
    };
  if (lease.state === "granted")
    return {
      waits_for: null,
      next: `Its owner uses the nodes. They are returned at ${until}, or now with: nodeyard release ${lease.id}`,
    };
  if (lease.state === "failed") return { waits_for: null, next: failedNext(lease, request, until) };
  if (request?.waits_for !== null && request?.waits_for !== undefined)
    return { waits_for: request.waits_for, next: `${request.next} It gives up at ${until}.` };
  return {
    waits_for: fromTree("lease.granting", "Its request is answered; a launcher is about to update the lease"),
    next: "A launcher locks the nodes for it, or marks it as failed, usually within a second.",
  };
}

/** The request of the part of a mixed set that is asked for; undefined: there is none now. */
async function requestOfPart({ tree }: OperationHandles, { id, set }: Lease): Promise<string | undefined> {
  const token = set?.parts.find(({ asked }) => asked !== null)?.asked?.token;
  if (token === undefined) return undefined;
  const all = await readEach(tree, paths.requests, decodeRequest);
  return all.find((one) => one.requestor === leaseRequestor(id) && partOf(one)?.token === token)?.id;
}

/** What a mixed set waits for: the part that the others wait for, or an older set. */
async function gatheringOf(
  handles: OperationHandles,
  lease: Lease,
  request: Story | undefined,
): Promise<Pick<Story, "waits_for" | "next">> {
  const parts = lease.set?.parts ?? [];
  const held = parts.filter(({ nodes }) => nodes.length > 0).map(({ label }) => label);
  const part = parts.find(({ asked }) => asked !== null)?.label;
  const kept =
    held.length === 0 ? "" : ` ${held.join(", ")} ${held.length === 1 ? "is" : "are"} held until then.`;
  const end = `${kept} It gives up at ${new Date(lease.expires).toISOString()}.`;
  if (part !== undefined && request?.waits_for != null) {
    const { meaning, facts, ...wait } = request.waits_for;
    return {
      waits_for: { ...wait, meaning: `Its part ${part}: ${meaning}`, facts: { ...facts, part, held } },
      next: `${request.next}${end}`,
    };
  }
  const { items } = await listLeases(handles);
  const older = items.filter(
    (one) => one.state === "gathering" && isBefore(one, lease) && nodesOfLease(one).length > 0,
  );
  if (part === undefined && held.length === 0 && older.length > 0)
    return {
      waits_for: fromTree(
        "set.behind",
        "An older set holds nodes and waits for what this one would hold",
        { sets: older.map(({ id }) => id) },
        new Date(lease.created).toISOString(),
      ),
      next: `It asks for its first part when that set has what it waits for, or ends.${end}`,
    };
  return {
    waits_for: fromTree("set.step", "A launcher is about to ask for its next part, or to hold one", {
      part,
      held,
    }),
    next: `A launcher goes on with it, usually within a second.${end}`,
  };
}

/** The request of a failed lease is still there, and its story says why. */
function failedNext(lease: Lease, request: Story | undefined, until: string): string {
  if (lease.why !== null)
    return `Nothing: ${lease.why}. It is deleted at ${until}, or now with: nodeyard release ${lease.id}`;
  const why = request === undefined ? "No pool could serve it." : request.next.replace(/^Nothing\.? ?/, "");
  return `Nothing. ${why} It is deleted at ${until}, or now with: nodeyard release ${lease.id}`;
}

/** The explanation of a lease whose record is gone, from journals: its events lead to the request, whose events say more. */
async function endedStory(id: string, query: QueryMembers): Promise<Story | undefined> {
  const { history: own } = await query({ lease: id });
  if (own.events.length === 0) return undefined;
  // One event of the lease that names the request is enough to find the rest.
  const request = own.events.find((event) => event.request !== null)?.request ?? undefined;
  const replies = await query({ lease: id, request });
  const ended = replies.history.events.findLast(({ event }) => event === "lease.ended");
  const why = ended === undefined ? "ended" : String(ended.facts.why);
  const failure = failureOf(replies.history);
  const about = { request: request ?? null, nodes: ended?.facts.nodes ?? [], failed_because: failure };
  const next =
    failure === null
      ? `It has ${why === "expired" ? "expired" : `been ${why}`}, and its nodes were returned.`
      : `Its request failed (${failure}), and the lease was deleted.`;
  return { ...goneStory({ kind: "lease", id, about, next }, replies), pools: [], estimate: null };
}
