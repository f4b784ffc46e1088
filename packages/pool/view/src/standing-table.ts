import {
  decodeStandings,
  type PoolOffer,
  STANDINGS,
  type Standing,
  type StandingReport,
  standingsOf,
} from "@nodeyard/model";
import type { ComponentEntry, OwnEntry, ViewEvent } from "./entries.ts";
import type { ImageTable } from "./image-table.ts";
import type { NodeTable } from "./node-table.ts";

/** What the standings of a view follow from. */
interface Facts {
  readonly own: ReadonlyMap<string, OwnEntry>;
  readonly components: ReadonlyMap<string, ComponentEntry>;
  readonly nodes: NodeTable;
  readonly images: ImageTable;
  readonly complete: boolean;
}

/** How everything stands, judged again at each event that may change it, and kept in between. */
export class StandingTable {
  #byId: ReadonlyMap<string, Standing> = new Map();
  readonly #reports = new Map<string, StandingReport>();

  /** The worst first. */
  list(): readonly Standing[] {
    return [...this.#byId.values()];
  }

  /** Of all pools that members report, each as often as a member serves it. */
  offers(): readonly PoolOffer[] {
    return [...this.#reports.values()].flatMap(({ facts }) => facts.flatMap(({ pools = [] }) => pools));
  }

  get(id: string): Standing | undefined {
    return this.#byId.get(id);
  }

  /** The standings that an event changed. An incomplete view judges nothing: what it lacks would look gone. */
  take(event: ViewEvent, facts: Facts): readonly ViewEvent[] {
    if (event.type === "own" && event.path.startsWith(`${STANDINGS}/`)) {
      if (event.after === undefined) this.#reports.delete(event.path);
      else this.#reports.set(event.path, decodeStandings(event.after.data));
    } else if (!this.#concerns(event)) return [];
    if (!facts.complete) return [];
    const before = this.#byId;
    this.#byId = new Map(standingsOf(this.#input(facts)).map((one) => [one.id, one]));
    const changed: ViewEvent[] = [];
    for (const [id, after] of this.#byId) {
      const former = before.get(id);
      if (JSON.stringify(former) !== JSON.stringify(after))
        changed.push({ type: "standing", id, before: former, after });
    }
    for (const [id, former] of before)
      if (!this.#byId.has(id)) changed.push({ type: "standing", id, before: former });
    return changed;
  }

  /** Nodes and images matter where no member reports their provider or them: cheap, since every change of a node asks. */
  #concerns(event: ViewEvent): boolean {
    switch (event.type) {
      case "component":
        return true;
      case "complete":
        return event.complete;
      case "image":
        return event.after === undefined || !this.#byId.has(`image/${event.image}`);
      case "node": {
        if (event.before !== undefined && event.after !== undefined) return false;
        const provider = (event.after ?? event.before)?.record.provider;
        const known = provider == null ? undefined : this.#byId.get(`provider/${provider}`);
        return provider != null && (known === undefined || known.code === "provider.left");
      }
      default:
        return false;
    }
  }

  #input({ components, nodes, images }: Facts) {
    const counts = [...nodes.byProvider.keys()].map(
      (name) => [name, nodes.byProvider.get(name).size] as const,
    );
    return {
      reports: this.#reports.values(),
      components: [...components.values()].map(({ record }) => record),
      nodes: new Map(counts),
      images: images.names(),
    };
  }
}
