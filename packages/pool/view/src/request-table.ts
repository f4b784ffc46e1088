import { decodeRequest } from "@nodeyard/model";
import type { RequestEntry, ViewEvent } from "./entries.ts";
import { MultiIndex } from "./multi-index.ts";

/** Node requests, with indexes by state and by requestor. */
export class RequestTable {
  readonly byId = new Map<string, RequestEntry>();
  readonly byState = new MultiIndex();
  /** Under "" where a request names none. By it min-ready requests, leases and backing requests are found. */
  readonly byRequestor = new MultiIndex();

  /** Takes a record's bytes. Throws a RecordError when it is unreadable. A path with empty data is no request. */
  put(id: string, data: Uint8Array, version: number): ViewEvent | undefined {
    if (data.length === 0) return this.remove(id);
    const after: RequestEntry = { id, record: decodeRequest(id, data), version };
    const before = this.byId.get(id);
    this.byId.set(id, after);
    this.#index(id, before, after);
    return { type: "request", id, before, after };
  }

  /** Undefined when there was no such request. */
  remove(id: string): ViewEvent | undefined {
    const before = this.byId.get(id);
    if (before === undefined) return undefined;
    this.byId.delete(id);
    this.#index(id, before, undefined);
    return { type: "request", id, before };
  }

  #index(id: string, before: RequestEntry | undefined, after: RequestEntry | undefined): void {
    this.byState.move(id, before?.record.state, after?.record.state);
    this.byRequestor.move(
      id,
      before && (before.record.requestor ?? ""),
      after && (after.record.requestor ?? ""),
    );
  }
}
