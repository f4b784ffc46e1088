import { messageOf, NodeyardError } from "@nodeyard/runtime";
import {
  CLOCK_TOLERANCE,
  openTicket,
  parseKeySet,
  type Refusal,
  rotate,
  SliverProtocolError,
  verifyText,
} from "@nodeyard/sliver-protocol";
import { type Delivery, deliverPartial } from "../../core/deliver.ts";
import { readGetSlivers } from "../../core/get-slivers.ts";
import type { State } from "../../core/record.ts";
import { keysOf, readSignedDocument, readTicket } from "../../core/signed-document.ts";
import { useTicket } from "../../core/time.ts";
import { BusyError, NotYetError, StoreWriteError, TicketRefusedError } from "../../errors.ts";
import { takeDocument } from "../../manager/documents.ts";
import type { Manager } from "../../manager/manager.ts";
import { documentOf, reportOf } from "../../manager/report.ts";
import { watched } from "../../manager/waits.ts";
import { type Context, type Method, placeOf, wrongArgument } from "../method.ts";
import { parseResponse } from "../xmlrpc/parse.ts";
import { desiredState } from "./slivers.ts";

/** Longest wait of Watch in milliseconds; less than the transport's limit of a call. */
const WATCH = 30_000;

/**
 * Methods on the whole document of the node. A refusal for signature, version or capacity is a fault "wrong argument" with the
 * reason; a failure of the node itself keeps its own code, so that a caller knows whether to try again.
 */
export const DOCUMENT_METHODS = {
  Ticket: {
    since: "v2",
    params: ["signed_ticket"],
    doc: "deliver a ticket for one sliver of this node, and create it.",
    run: (context, [text]) =>
      changed(context, (state) => {
        const { manager } = context;
        const { node, machine } = manager.options;
        const opened = openTicket(textOf(text), keysOf(state), node, manager.now);
        // In the same write as its effect, so that a crash cannot make the ticket usable again.
        const used = useTicket(state, opened.jti, opened.exp + CLOCK_TOLERANCE, manager.now);
        return redeem(manager, used, readTicket(opened, state, machine.policy.defaults, manager.now));
      }),
  },
  AdminTicket: {
    since: "v2",
    params: ["unsigned_ticket"],
    doc: "deliver a ticket of root's own, and create its first sliver.",
    run: (context, [text]) =>
      changed(context, (state) => {
        const { manager, profile } = context;
        // Tickets of the old PLC are whole XML-RPC responses.
        const response = parseResponse(textOf(text));
        if ("fault" in response) throw wrongArgument("the ticket is a fault");
        return redeem(manager, state, readGetSlivers(response.value, manager.options.node, profile));
      }),
  },
  Deliver: {
    since: "native",
    params: ["signed_document"],
    doc: "replace the node's desired state, and report.",
    run: async ({ manager }, [text]) => {
      const { node, machine } = manager.options;
      const { defaults } = machine.policy;
      const read = (state: State) => readSignedDocument(textOf(text), state, node, defaults, manager.now);
      await ofCaller(takeDocument(manager, read));
      return reportOf(manager);
    },
  },
  RotateKeys: {
    since: "native",
    params: ["signed_key_set"],
    doc: "replace the keys whose signatures this node trusts.",
    run: (context, [text]) =>
      changed(context, (state) => {
        const { now } = context.manager;
        const current = keysOf(state);
        const next = parseKeySet(verifyText("key-set", textOf(text), current, now));
        return { ...state, keySet: rotate(current, next, now) };
      }),
  },
  Status: {
    since: "native",
    params: [],
    doc: "report the node's version, its slivers, their phases, loans and errors.",
    run: ({ manager }) => reportOf(manager),
  },
  Watch: {
    since: "native",
    params: ["sequence"],
    doc: "return Status as soon as its sequence differs, or after half a minute.",
    run: async ({ manager }, [sequence]) => {
      if (!Number.isSafeInteger(sequence)) throw wrongArgument("sequence must be a whole number");
      // An equal sequence means that the caller has seen the present report; it waits for the next one.
      await watched(manager, sequence as number, WATCH);
      return reportOf(manager);
    },
  },
  GetDocument: {
    since: "native",
    params: [],
    doc: "return the node's desired state and its version.",
    run: ({ manager }) => documentOf(manager),
  },
} satisfies Record<string, Method>;

/** Stores the next state. */
function changed(context: Context, next: (state: State) => State): Promise<number> {
  return ofCaller(context.manager.change((state) => ({ state: next(state), result: 1 }), placeOf(context)));
}

/** Reports errors that the caller's input caused as wrong arguments, not as failures of the node. */
async function ofCaller<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const ours = [BusyError, NotYetError, StoreWriteError].some((one) => error instanceof one);
    if (!ours && (error instanceof SliverProtocolError || error instanceof NodeyardError))
      throw wrongArgument(messageOf(error));
    throw error;
  }
}

/** Delivers a ticket, and creates its sliver if the sliver waits for Create. */
function redeem(manager: Manager, state: State, delivery: Delivery): State {
  const { state: next, refused } = deliverPartial(state, delivery, manager.options.capacity);
  if (refused.length > 0) throw new TicketRefusedError(refused.map(refusalText).join("; "));
  const name = delivery.records[0]?.name;
  return name === undefined ? next : desiredState(next, name, true);
}

/** For the caller of a ticket, whose only sliver this is. */
function refusalText({ name, code, reason }: Refusal): string {
  return `${name ?? "a sliver"}: ${code}: ${reason}`;
}

/** The argument as text; throws a fault. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  throw wrongArgument("a text is required");
}
