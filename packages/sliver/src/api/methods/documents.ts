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
import {
  type Delivery,
  deliverFull,
  deliverPartial,
  readGetSlivers,
  readSignedDocument,
  readTicket,
  type State,
  useTicket,
} from "../../core/index.ts";
import { TicketRefusedError } from "../../errors.ts";
import { documentOf, reportOf, watched } from "../../manager/index.ts";
import { type Context, keysOf, type Method } from "../context.ts";
import { Fault, wrongArgument } from "../fault.ts";
import { parseResponse } from "../xmlrpc/index.ts";
import { desiredState } from "./slivers.ts";

/** Milliseconds that a watcher waits at most; well below what carries the call allows. */
const WATCH = 30_000;

const ticket: Method = {
  name: "Ticket",
  doc: "Ticket(signed_ticket): deliver a ticket for one sliver of this node, and create it.",
  arity: 1,
  run: async (context, [text]) => {
    const { manager } = context;
    const { node, machine, capacity } = manager.options;
    await manager.change((state) =>
      refusing(() => {
        const opened = openTicket(textOf(text), keysOf(context), node, manager.now);
        // In the same write as its effect: a ticket cannot be used again after a crash.
        const used = useTicket(state, opened.jti, opened.exp + CLOCK_TOLERANCE, manager.now);
        const delivery = readTicket(opened, machine.policy.defaults);
        return { state: redeem(used, delivery, capacity), result: 1 };
      }),
    );
    return 1;
  },
};

const adminTicket: Method = {
  name: "AdminTicket",
  doc: "AdminTicket(unsigned_ticket): deliver a ticket of root's own, and create its first sliver.",
  arity: 1,
  run: async (context, [text]) => {
    const { manager, profile } = context;
    const { node, capacity } = manager.options;
    await manager.change((state) =>
      refusing(() => {
        const response = parseResponse(textOf(text));
        if ("fault" in response) throw wrongArgument("the ticket is a fault");
        const tags = { defaults: manager.options.machine.policy.defaults, resources: profile.resources };
        return { state: redeem(state, readGetSlivers(response.value, node, tags), capacity), result: 1 };
      }),
    );
    return 1;
  },
};

const deliver: Method = {
  name: "Deliver",
  doc: "Deliver(signed_document): replace the node's desired state, and report.",
  arity: 1,
  run: async (context, [text]) => {
    const { manager } = context;
    const { node, machine, capacity } = manager.options;
    const { defaults } = machine.policy;
    await manager.change((state) =>
      refusing(() => {
        const delivery = readSignedDocument(textOf(text), keysOf(context), node, defaults, manager.now);
        return { state: deliverFull(state, delivery, capacity).state, result: 1 };
      }),
    );
    return reportOf(manager);
  },
};

const rotateKeys: Method = {
  name: "RotateKeys",
  doc: "RotateKeys(signed_key_set): replace the keys whose signatures this node trusts.",
  arity: 1,
  run: async (context, [text]) => {
    const { manager } = context;
    await manager.change((state) =>
      refusing(() => {
        const current = keysOf(context);
        const next = parseKeySet(verifyText("key-set", textOf(text), current, manager.now));
        return { state: { ...state, keySet: rotate(current, next, manager.now) }, result: 1 };
      }),
    );
    return 1;
  },
};

const status: Method = {
  name: "Status",
  doc: "Status(): report the node's version, its slivers, their phases, loans and errors.",
  arity: 0,
  run: ({ manager }) => reportOf(manager),
};

const watch: Method = {
  name: "Watch",
  doc: "Watch(sequence): return Status as soon as its sequence differs, or after half a minute.",
  arity: 1,
  run: async ({ manager }, [sequence]) => {
    if (!Number.isSafeInteger(sequence)) throw wrongArgument("sequence must be a whole number");
    await watched(manager, sequence as number, WATCH);
    return reportOf(manager);
  },
};

const getDocument: Method = {
  name: "GetDocument",
  doc: "GetDocument(): return the node's desired state and its version.",
  arity: 0,
  run: ({ manager }) => documentOf(manager),
};

export const DOCUMENT_METHODS: readonly Method[] = [
  ticket,
  adminTicket,
  deliver,
  rotateKeys,
  status,
  watch,
  getDocument,
];

/** The first sliver of a ticket is created with it, if it is one that waits to be. */
function redeem(
  state: State,
  delivery: Delivery,
  capacity: Context["manager"]["options"]["capacity"],
): State {
  const { state: next, refused } = deliverPartial(state, delivery, capacity);
  if (refused.length > 0) throw new TicketRefusedError(refused.map(refusalText).join("; "));
  const name = delivery.records[0]?.name;
  return name === undefined ? next : desiredState(next, name, true);
}

function refusalText({ name, code, reason }: Refusal): string {
  return `${name ?? "a sliver"}: ${code}: ${reason}`;
}

/** What is wrong with what the caller sent is his argument, not our failure. */
function refusing<T>(body: () => T): T {
  try {
    return body();
  } catch (error) {
    if (error instanceof Fault) throw error;
    if (error instanceof SliverProtocolError || error instanceof NodeyardError)
      throw wrongArgument(messageOf(error));
    throw error;
  }
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  throw wrongArgument("a text is required");
}
