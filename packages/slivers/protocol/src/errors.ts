import { errorClass as classOf, NodeyardError } from "@nodeyard/runtime";

/** Base class of this package's errors. `code` is stable and meant for programs. */
export class SliverProtocolError extends NodeyardError {}

const errorClass = (code: string) => classOf(code, SliverProtocolError);

/** No valid key of the set signed the text, or it was signed for another purpose. */
export class SignatureError extends errorClass("sliver-protocol.signature") {}

/** A value that does not match the grammar of documents. The message names its place. */
export class GrammarError extends errorClass("sliver-protocol.grammar") {}

/** A ticket with a valid signature that is for another node or another time. */
export class TicketError extends errorClass("sliver-protocol.ticket") {}

/** A key set that must not replace the present one. */
export class KeySetError extends errorClass("sliver-protocol.key_set") {}

/** The sliver manager gave no valid answer in time. It is unknown whether it acted. */
export class SliverUnreachableError extends errorClass("sliver-protocol.unreachable") {}

/** Another writer owns the node. The message says how to take it over. */
export class SliverOwnedError extends SliverProtocolError {
  readonly writer: string;

  constructor(node: string, writer: string, epoch: number, ours: { writer: string; epoch: number }) {
    super(
      "sliver-protocol.owned",
      `node ${node} is written by ${writer} in epoch ${epoch}; ${ours.writer} does not write to it unless ${writer} gives it up or the epoch here is set above ${epoch}`,
    );
    this.writer = writer;
  }
}

/** A writer with a higher epoch has taken over the node. This writer must not write to it any more. */
export class SliverFencedError extends SliverProtocolError {
  readonly epoch: number;
  readonly theirs: number;

  constructor(node: string, epoch: number, theirs: number, writer: string | undefined) {
    super(
      "sliver-protocol.fenced",
      `node ${node} is in epoch ${theirs}${writer === undefined ? "" : ` of ${writer}`}; epoch ${epoch}, which is ours, has ended`,
    );
    this.epoch = epoch;
    this.theirs = theirs;
  }
}

/** The node lost its store while slivers ran. A document based on what it still knows would end them. */
export class SliverStoreLostError extends errorClass("sliver-protocol.store_lost") {}

/** Other writers changed the node's document at each attempt. This writer changed nothing. */
export class SliverContendedError extends errorClass("sliver-protocol.contended") {}

/** Too many changes wait for a node. Nothing was done. */
export class SliverBusyError extends errorClass("sliver-protocol.busy") {}

/** The sliver manager refused a call. `fault` is its number, as in XML-RPC: 100 method, 101 count, 102 argument, 104 call, 108 permission. */
export class SliverFaultError extends SliverProtocolError {
  readonly fault: number;

  constructor(fault: number, message: string) {
    super("sliver-protocol.fault", message);
    this.fault = fault;
  }
}

/** The file of the launcher's signing keys cannot be used. The message names the file and the remedy. */
export class KeyFileError extends errorClass("sliver-protocol.key_file") {}
