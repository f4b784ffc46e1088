import { messageOf } from "@nodeyard/runtime";
import { MIN_READY } from "../../scheduler/index.ts";
import type { RequestEntry, ViewEvent } from "../../view/index.ts";
import type { Context } from "../context.ts";
import { retireMinReady } from "./min-ready.ts";

/**
 * The requestor of this session's min-ready requests: when one ends, its nodes are freed and the request goes. Whose
 * request it is shows in its event id, which is noted before the request is written: a lost reply orphans nothing.
 */
export class MinReadyController {
  readonly #context: Context;
  readonly #busy = new Set<string>();

  constructor(context: Context) {
    this.#context = context;
  }

  onEvent(event: ViewEvent): void {
    if (event.type === "request" && event.after !== undefined) this.#look(event.after);
  }

  /** The session is lost, and with it the requests. */
  forget(): void {
    this.#context.ownMinReady.clear();
  }

  sweep(): void {
    const { requests } = this.#context.view;
    for (const id of requests.byRequestor.get(MIN_READY)) this.#look(requests.byId.get(id)!);
  }

  #look(entry: RequestEntry): void {
    const { record, id } = entry;
    if (
      record.requestor !== MIN_READY ||
      !this.#context.ownMinReady.has(record.eventId ?? "") ||
      this.#busy.has(id)
    )
      return;
    if (record.state !== "fulfilled" && record.state !== "failed") return;
    this.#busy.add(id);
    retireMinReady(this.#context, entry)
      .then(() => this.#context.ownMinReady.delete(record.eventId ?? ""))
      .catch((error) =>
        this.#context.log.warn(
          { request: id, error: messageOf(error) },
          "cannot delete a min-ready request; the sweep will",
        ),
      )
      .finally(() => this.#busy.delete(id));
  }
}
