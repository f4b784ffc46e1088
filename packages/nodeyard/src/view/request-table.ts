import { decodeRequest } from "@nodeyard/model";
import type { RequestEntry, ViewEvent } from "./entries.ts";
import { MultiIndex } from "./multi-index.ts";

/** Node requests, with indexes by state and by requestor. */
export class RequestTable {
  readonly byId = new Map<string, RequestEntry>();
  readonly byState = new MultiIndex();
  readonly byRequestor = new MultiIndex();

  /** Takes a record's bytes. Throws a RecordError for one that makes no sense. Empty data is no request. */
  put(id: string, data: Uint8Array, version: number): ViewEvent | undefined {
    if (data.length === 0) return this.remove(id);
    const after: RequestEntry = { id, record: decodeRequest(id, data), version };
    const before = this.byId.get(id);
    if (before !== undefined) this.#index(before, "delete");
    this.byId.set(id, after);
    this.#index(after, "add");
    return { type: "request", id, before, after };
  }

  remove(id: string): ViewEvent | undefined {
    const before = this.byId.get(id);
    if (before === undefined) return undefined;
    this.byId.delete(id);
    this.#index(before, "delete");
    return { type: "request", id, before };
  }

  #index(entry: RequestEntry, how: "add" | "delete"): void {
    this.byState[how](entry.record.state, entry.id);
    this.byRequestor[how](entry.record.requestor ?? "", entry.id);
  }
}
