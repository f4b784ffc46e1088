import { createHash } from "node:crypto";
import { defined } from "@nodeyard/runtime";
import {
  type KeySet,
  parseDocument,
  type Rspec,
  type SliverSpec,
  type SliverTicket,
  verifyText,
} from "@nodeyard/sliver-protocol";
import { WrongDocumentError } from "../errors.ts";
import type { Delivery } from "./deliver.ts";
import { type Incoming, NO_VERSION, type State, type Version } from "./record.ts";

/** The keys that a node trusts; without any, an empty set, which verifies no signature. */
export function keysOf({ keySet }: Pick<State, "keySet">): KeySet {
  return keySet ?? { v: 1, version: 0, keys: [] };
}

/** Epochs are counted from 1 or are seconds since 1970. A step is limited, because after the highest number no epoch could follow. */
const MAX_STEP = 1000;
const DAY = 86_400;
const HIGHEST_FIRST = 2 ** 40;

/** With a stolen key an epoch above all others could lock the owner out for good. Throws WrongDocumentError. */
function checkEpoch(epoch: number, before: number, now: number): void {
  const highest = Math.max(before === 0 ? HIGHEST_FIRST : before + MAX_STEP, Math.floor(now) + DAY);
  if (epoch > highest)
    throw new WrongDocumentError(
      `epoch ${epoch} is too far above ${before}, which this node has; the highest it accepts now is ${highest}`,
    );
}

/** Daily traffic budgets come from PLC's documents. A signed document has budgets only when it sets them. */
const NO_BUDGETS = { netDay: 0, netDayThreshold: 0, net2Day: 0, net2DayThreshold: 0 };

/**
 * Parses a signed document. `now` is in seconds. A fault of one sliver is reported with it (`malformed`); what is wrong with
 * the whole throws: SignatureError, GrammarError, WrongDocumentError.
 */
export function readSignedDocument(
  text: string,
  state: State,
  node: string,
  defaults: Rspec,
  now: number,
): Delivery {
  const document = parseDocument(verifyText("document", text, keysOf(state), now));
  // A signature is valid on every machine that trusts the key, so the document names its machine.
  if (document.node !== node)
    throw new WrongDocumentError(`the document is for node ${document.node}, this is ${node}`);
  if (document.epoch === 0)
    throw new WrongDocumentError("epoch 0 is for documents of PLC; a signed one starts at 1");
  checkEpoch(document.epoch, state.minimum.epoch, now);
  const version = { epoch: document.epoch, number: document.version };
  const filled = { ...defaults, ...NO_BUDGETS, ...document.defaults };
  return {
    version,
    // Of the payload without the signature, because a writer may sign the same document again with its next key.
    digest: createHash("sha256").update(text.split(".")[1]!).digest("hex"),
    ...defined({ writer: document.writer }),
    records: document.slivers.map((spec) => incoming(spec, version, filled)),
    malformed: document.malformed,
    ...defined({ removes: document.removes }),
  };
}

/**
 * The state of a node after its owner has reset the writer on the machine: the next document may have any epoch and writer, and the node
 * trusts `keySet`. Slivers and used tickets stay.
 */
export function withoutWriter({ writer: _, ...state }: State, keySet: KeySet): State {
  const records = new Map([...state.records].map(([name, one]) => [name, { ...one, stamp: NO_VERSION }]));
  return { ...state, keySet, records, minimum: NO_VERSION, digest: "", refused: [] };
}

/** Parses a ticket, which contains one sliver and has been verified by `openTicket`. `now` is in seconds. Throws WrongDocumentError. */
export function readTicket(ticket: SliverTicket, { minimum }: State, defaults: Rspec, now: number): Delivery {
  checkEpoch(ticket.epoch, minimum.epoch, now);
  const version = { epoch: ticket.epoch, number: ticket.version };
  return {
    version,
    digest: "",
    records: [incoming(ticket.sliver, version, { ...defaults, ...NO_BUDGETS })],
    malformed: [],
  };
}

/** The record of a sliver. Amounts that the writer leaves out are `defaults`. */
function incoming(
  { held, expiresAt, rspec, tags, ...spec }: SliverSpec,
  stamp: Version,
  defaults: Rspec,
): Incoming {
  return {
    ...spec,
    stamp,
    kind: spec.instantiation === "nm-controller" ? "controller" : "sliver",
    // A held sliver does not expire.
    ...(held ? { held } : defined({ expiresAt })),
    rspec: { ...defaults, ...rspec },
    ...(Object.keys(tags).length === 0 ? {} : { tags }),
  };
}
