import type { VerdictCode } from "@nodeyard/scheduler";

/** What happens next to a request that waits, for every reason there is: the type demands a text for each code of the scheduler. */
export const nextSteps: Readonly<Record<VerdictCode, string>> = {
  "queue.behind": "Its turn comes when the requests before it have their nodes or are gone.",
  "queue.share":
    "Its turn comes when its tenant or client has fewer nodes by weight than those before it, or those have what they want.",
  "queue.starting":
    "It continues as soon as one of the requests being started has all its launches under way.",
  "capacity.pool": "It is retried as soon as a node of the pool is deleted or free.",
  "capacity.provider": "It is retried as soon as a node of the provider is deleted or its quota changes.",
  "provider.failing":
    "It is retried as soon as the provider answers; the launcher asks again with growing pauses. Another pool may take it first.",
  "provider.foreign":
    "Stop the other launcher, or remove the provider from one of the two configurations. This launcher serves it when the other is gone: it looks again with growing pauses, a minute at most.",
  "provider.configuration":
    "Correct what the error names. It is opened again with growing pauses, a minute at most, and at once when its configuration has changed. Another pool may take it first.",
  "capacity.concurrency": "It is retried as soon as a launch of the provider ends.",
  "capacity.tenant":
    "It is retried as soon as a node of the tenant is returned, or the tenant's limit is raised.",
  "budget.used":
    "It is retried when a new month begins, or as soon as the tenant's budget is raised: every launcher has to read the new one.",
  "offering.failing":
    "At the next try one request tests whether launches work again; another pool may take this one first.",
  "offering.budget": "It is retried as soon as the hour's budget allows it; another pool may take it first.",
  "offering.price":
    "It is retried whenever a price has been read, every few minutes; raise max-price, or add an offering.",
  "offering.trying": "If that launch works, this request continues; if not, it waits for the next try.",
  "capacity.reserved": "The request that it is kept for goes first; then this one is retried.",
  "capacity.refused": "One request tries again at that time, or as soon as a machine there is deleted.",
  "image.waits":
    'It is retried as soon as an upload of the image is ready or a node of the label is free, and declined if builders make nothing for ten minutes; see "nodeyard explain image NAME".',
  "nodes.none-free":
    "Each returned host is kept for the first request in line that can use it, until that one has all its hosts.",
  "nodes.too-few": "It is reconsidered when a host of its labels is registered.",
  "yield.provider": "The provider it prefers takes it or declines; then this pool reconsiders it.",
  "yield.priority":
    "The pool with the better priority takes it, declines, or reports that it is full; then this pool reconsiders it.",
  "yield.capable": "The other pool takes it or declines; then this pool declines it.",
  "offer.awaited":
    "It is served as soon as that pool is registered. At the time of the next try it fails, unless another pool can serve it.",
  "provider.inert": "Nothing, until max-concurrency of the provider is raised or another pool takes it.",
  "retry.later": "It is retried automatically.",
  handling: "When all its nodes are ready, it is fulfilled; if one cannot be made, the pool declines it.",
  "queue.next": "A launcher considers it, usually within a second.",
  "declined.here":
    "The pools that have not decided yet take it or decline; when all have declined, it fails.",
  "pending.elsewhere":
    "The launcher that has it continues; if that launcher died, the request is put back within a minute.",
  "pools.none": "Nothing, until a launcher has registered a pool.",
  "tree.incomplete":
    "It is considered as soon as the launcher has read the whole tree, usually within seconds.",
};
