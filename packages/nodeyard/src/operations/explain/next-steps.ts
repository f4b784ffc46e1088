import type { VerdictCode } from "../../scheduler/index.ts";

/** What happens next to a request that waits, for every reason there is. */
export const nextSteps: Readonly<Record<VerdictCode, string>> = {
  "queue.behind": "Its turn comes when the requests before it have their nodes or are gone.",
  "queue.starting": "It goes on as soon as one of the requests being started has all its launches under way.",
  "capacity.pool": "It is tried again as soon as a node of the pool is gone or free.",
  "capacity.provider": "It is tried again as soon as a node of the provider is gone or its quota changes.",
  "provider.failing":
    "It is tried again as soon as the provider answers; that is asked again and again, with pauses. Another pool may take it before.",
  "capacity.concurrency": "It is tried again as soon as a launch of the provider ends.",
  "capacity.tenant": "It is tried again as soon as a node of the tenant is returned, or its limit is raised.",
  "offering.failing":
    "At the next try one request finds out whether it works again; another pool may take it before.",
  "offering.budget":
    "It is tried again as soon as the hour's budget allows it; another pool may take it before.",
  "offering.trying": "If that launch works, this request goes on; if not, it waits for the next try.",
  "capacity.reserved": "The request that it is kept for goes first; then this one is tried again.",
  "capacity.refused": "One request tries again at that time, or as soon as a machine there is gone.",
  "image.waits":
    'It is tried again as soon as an upload of the image is ready, or a node of the label is free, and declined when builders make nothing for ten minutes; "nodeyard explain image NAME" says how that stands.',
  "nodes.none-free":
    "Each host that is returned is kept for the first in line who can use it, until that one has all its hosts.",
  "nodes.too-few": "It is looked at again when a host of its labels is registered.",
  "yield.provider": "The provider it prefers takes it, or declines; then this one looks again.",
  "yield.priority":
    "The better pool takes it, or declines, or says that it is full; then this one looks again.",
  "yield.capable": "The other pool takes it, or declines; then this one declines too.",
  "provider.inert": "Nothing, until max-concurrency of the provider is raised or another pool takes it.",
  "retry.later": "It is tried again by itself.",
  handling: "When all its nodes are ready, it is fulfilled; if one cannot be made, the pool declines.",
  "queue.next": "A launcher looks at it within a moment.",
  "declined.here":
    "The pools that have not decided yet take it or decline; when all have declined, it fails.",
  "pending.elsewhere":
    "The launcher that has it goes on; if that died, the request is put back within a minute.",
  "pools.none": "Nothing, until a launcher has registered a pool.",
  "tree.incomplete": "It is looked at as soon as the launcher knows the whole tree, usually within seconds.",
};
