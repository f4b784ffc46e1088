import { createHash } from "node:crypto";
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
import type { Incoming, Version } from "./record.ts";

/** What a signed document brings. `now` is in seconds. Throws SignatureError, GrammarError, WrongDocumentError. */
export function readSignedDocument(
  text: string,
  keys: KeySet,
  node: string,
  defaults: Rspec,
  now: number,
): Delivery {
  const document = parseDocument(verifyText("document", text, keys, now));
  if (document.node !== node)
    throw new WrongDocumentError(`the document is for node ${document.node}, this is ${node}`);
  if (document.epoch === 0)
    throw new WrongDocumentError("epoch 0 is for documents of PLC; a signed one starts at 1");
  const version = { epoch: document.epoch, number: document.version };
  const filled = { ...defaults, ...document.defaults };
  return {
    version,
    // Of what was said, not of its signature: a writer may sign the same document again with its next key.
    digest: createHash("sha256").update(text.split(".")[1]!).digest("hex"),
    ...(document.writer === undefined ? {} : { writer: document.writer }),
    records: document.slivers.map((spec) => incoming(spec, version, filled)),
    malformed: document.malformed,
  };
}

/** What a ticket brings: one sliver. */
export function readTicket(ticket: SliverTicket, defaults: Rspec): Delivery {
  const version = { epoch: ticket.epoch, number: ticket.version };
  return { version, digest: "", records: [incoming(ticket.sliver, version, defaults)], malformed: [] };
}

function incoming(spec: SliverSpec, stamp: Version, defaults: Rspec): Incoming {
  const { held, expiresAt, rspec, image, loans, name, generation, instantiation, keys, tags } = spec;
  return {
    name,
    stamp,
    generation,
    kind: instantiation === "nm-controller" ? "controller" : "sliver",
    instantiation,
    // What is held for a person does not end by time.
    ...(held || expiresAt === undefined ? {} : { expiresAt }),
    keys,
    ...(image === undefined ? {} : { image }),
    initscript: spec.initscript,
    delegations: spec.delegations,
    rspec: { ...defaults, ...rspec },
    ...(Object.keys(tags).length === 0 ? {} : { tags }),
    ...(loans === undefined ? {} : { loans }),
  };
}
