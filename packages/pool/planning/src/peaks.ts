import type { Resources } from "@nodeyard/driver";
import type { ViewEvent } from "@nodeyard/view";

/** The most nodes at once, with their resources. A node counts from the start of its launch to the end of its deletion. */
export interface Peak {
  readonly provider: string;
  /** Null: of all labels together. */
  readonly label: string | null;
  readonly nodes: number;
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
}

type Amounts = Omit<Peak, "provider" | "label">;
const NONE: Amounts = { nodes: 0, cores: 0, ram: 0 };

/** Sums what exists, by provider and label. */
export class Peaks {
  /** What one node of a label takes; of resources that are not known, nothing. */
  readonly #needOf: (provider: string, label: string) => Resources;
  /** By provider, and by provider and label: what exists at present. */
  readonly #now = new Map<string, Amounts>();
  /** Under the same keys. Nodes, cores and RAM may have been highest at different moments. */
  readonly #most = new Map<string, Peak>();
  /** What each node was counted for. */
  readonly #counted = new Map<string, readonly [provider: string, label: string]>();

  constructor(needOf: (provider: string, label: string) => Resources) {
    this.#needOf = needOf;
  }

  /** Called with each change of a node. Only its first and its last one count. */
  onNode({ id, after }: Extract<ViewEvent, { type: "node" }>): void {
    const known = this.#counted.get(id);
    if (after === undefined) {
      this.#counted.delete(id);
      if (known !== undefined) this.#add(known, -1);
    } else if (known === undefined) {
      const counted = [after.record.provider ?? "", after.record.type.join(",")] as const;
      this.#counted.set(id, counted);
      this.#add(counted, 1);
    }
  }

  /** Every provider and label that ever had a node. */
  list(): readonly Peak[] {
    return [...this.#most.values()];
  }

  #add([provider, label]: readonly [string, string], sign: 1 | -1): void {
    const { cores = 0, ram = 0 } = this.#needOf(provider, label);
    for (const kind of [label, null]) {
      const key = JSON.stringify([provider, kind]);
      const before = this.#now.get(key) ?? NONE;
      const now = {
        nodes: before.nodes + sign,
        cores: before.cores + sign * cores,
        ram: before.ram + sign * ram,
      };
      const most = this.#most.get(key) ?? NONE;
      this.#now.set(key, now);
      this.#most.set(key, {
        provider,
        label: kind,
        nodes: Math.max(most.nodes, now.nodes),
        cores: Math.max(most.cores, now.cores),
        ram: Math.max(most.ram, now.ram),
      });
    }
  }
}
