import { type Place, placeText } from "@nodeyard/driver";
import { elsewhereOf, isElsewhere } from "@nodeyard/scheduler";
import type { NodeEntry } from "@nodeyard/view";
import type { OpenProvider } from "../handles.ts";
import type { RecordHandles } from "../held-records.ts";
import { takeOut } from "../nodes/node-lock.ts";
import type { Served } from "./served.ts";

/** Nodes of one provider that no request gets. */
export interface Stranded {
  readonly provider: string;
  readonly nodes: number;
  /**
   * elsewhere: their machines are in `place`, where the provider does not look. leaving: the provider left the configuration, and this
   * launcher deletes them as they become free. unserved: no launcher serves the provider, so that nobody deletes them.
   */
  readonly why: "elsewhere" | "leaving" | "unserved";
  readonly place: string | null;
}

/**
 * Providers that a new configuration replaced by ones that look elsewhere: kept open while records name machines where only they look,
 * so that these are deleted with the credentials that made them.
 */
export class FormerProviders {
  readonly #context: RecordHandles;
  readonly #current: (provider: string) => OpenProvider | undefined;
  readonly #kept = new Set<Served>();

  constructor(context: RecordHandles, current: (provider: string) => OpenProvider | undefined) {
    this.#context = context;
    this.#current = current;
  }

  /** Takes a provider that serves no more. False: no machine needs it. */
  keep(served: Served): boolean {
    if (this.#nodesOf(served).length === 0) return false;
    this.#kept.add(served);
    return true;
  }

  /** The one that looks where the machine of a record is. */
  of({ record }: Pick<NodeEntry, "record">): OpenProvider | undefined {
    for (const { open } of this.#kept)
      if (open?.config.name === record.provider && !isElsewhere(record, open?.provider.place?.()))
        return open;
    return undefined;
  }

  /** Deletes their free nodes. Returns those that are needed no more, which are the caller's to close. */
  async sweep(): Promise<readonly Served[]> {
    const over: Served[] = [];
    for (const served of [...this.#kept]) {
      const nodes = this.#nodesOf(served);
      if (nodes.length === 0) {
        this.#kept.delete(served);
        over.push(served);
      } else await takeOutFree(this.#context, nodes, "its provider works elsewhere now");
    }
    return over;
  }

  /** All of them, which are the caller's to close. */
  clear(): readonly Served[] {
    const all = [...this.#kept];
    this.#kept.clear();
    return all;
  }

  /** Nodes whose machines this one sees, and the one that took its place does not. */
  #nodesOf({ open, config }: Served): readonly NodeEntry[] {
    const current = this.#current(config.name)?.provider.place?.();
    const own = open?.provider.place?.();
    if (own === undefined) return [];
    return nodesOf(this.#context, config.name).filter(
      ({ record }) => isElsewhere(record, current) && !isElsewhere(record, own),
    );
  }
}

/** All nodes of a provider. */
export function nodesOf({ view }: Pick<RecordHandles, "view">, provider: string): readonly NodeEntry[] {
  return [...view.nodes.byProvider.get(provider)].map((id) => view.nodes.byId.get(id)!);
}

/** Sends those of the nodes that are ready and free to their deletion: nobody gives them out any more. */
export async function takeOutFree(
  context: RecordHandles,
  nodes: readonly NodeEntry[],
  why: string,
): Promise<void> {
  for (const { id, record, contenders } of nodes)
    if (record.state === "ready" && record.allocatedTo === null && contenders.length === 0)
      await takeOut(context, id, why);
}

/** The nodes of a provider that are where it does not look: how many, by the text of the place. */
export function elsewhereIn(
  view: RecordHandles["view"],
  provider: string,
  here: Place | undefined,
): ReadonlyMap<string, number> {
  return elsewhereOf(
    nodesOf({ view }, provider).map(({ record }) => record),
    here,
  );
}

/** Says where nodes of a provider are that it does not see any more. To be called when it has opened. */
export function reportElsewhere(
  { view, log }: Pick<RecordHandles, "view" | "log">,
  { config, provider }: OpenProvider,
): void {
  const here = provider.place?.();
  for (const [place, nodes] of elsewhereIn(view, config.name, here))
    log.error(
      { provider: config.name, nodes, place, now: placeText(here!) },
      "nodes of a provider are where it does not work any more: they are neither given out nor taken for gone; put the former settings back until they are deleted, or delete their machines by hand and forget the records",
    );
}
