import { errorClass, NodeyardError } from "@nodeyard/runtime";

/** A document or ticket that is older than the node's. Nothing is applied. */
export class StaleDocumentError extends errorClass("sliver.stale") {}

/** Two different documents have the same epoch and version: two launchers write for this node. Nothing is applied. */
export class ConflictingDocumentError extends errorClass("sliver.conflict") {}

/** A document for another node, or an unreadable one. */
export class WrongDocumentError extends errorClass("sliver.document") {}

/** A document that would end most slivers without saying that this is intended. Nothing is applied. */
export class MassRemovalError extends NodeyardError {
  readonly ended: readonly string[];

  constructor(ended: readonly string[], present: number) {
    super(
      "sliver.mass_removal",
      `the document would end ${ended.length} of ${present} slivers (${ended.slice(0, 3).join(", ")}, ...); one that is meant to says "removes": ${ended.length}, or is polled a second time`,
    );
    this.ended = ended;
  }
}

/** A ticket that was used already, or that this node does not accept. */
export class TicketRefusedError extends errorClass("sliver.ticket_refused") {}

/** Too many changes wait. Nothing was done. */
export class BusyError extends errorClass("sliver.busy") {}

/** A call was stored, but applying it failed or has not finished. It is retried. */
export class NotYetError extends errorClass("sliver.not_yet") {}

/** The store belongs to another node: a copied disk, or a wrong folder. */
export class ForeignStoreError extends errorClass("sliver.store_foreign") {}

/** The store was written by a later version of this program. */
export class NewerStoreError extends errorClass("sliver.store_newer") {}

/** The change may not be on disk, so it was not acknowledged (rule 10). */
export class StoreWriteError extends errorClass("sliver.store_write") {}

/** The PLC server did not answer in time. */
export class PlcTimeoutError extends errorClass("sliver.plc_unreachable") {}

/** The PLC server answered with a fault, for example because the authentication expired. */
export class PlcFaultError extends NodeyardError {
  constructor(fault: string) {
    super("sliver.plc_fault", `the centre answered with a fault: ${fault}`);
  }
}

/** The URL of the documents did not answer in time. */
export class SourceUnreachableError extends errorClass("sliver.source_unreachable") {}

/** The answer from the URL of the documents is no document. */
export class SourceAnswerError extends errorClass("sliver.source_answer") {}

/** The node has no key set, so it accepts no signed document. */
export class NoKeysError extends NodeyardError {
  constructor() {
    super("sliver.no_keys", "this node has no key set; enrol it");
  }
}

/** An operation of a back end exceeded its time limit. */
export class StepTimeoutError extends errorClass("sliver.step_timeout") {}

/** An operation did not start, because a sliver that must first give an amount back has failed to do so. */
export class LenderStuckError extends errorClass("sliver.lender_stuck") {}

/** The manager is stopping. */
export class StoppingError extends errorClass("sliver.stopping") {}

/** A program of a back end failed, or is not installed. */
export class CommandError extends errorClass("sliver.command") {}

/** Another incarnation uses the sliver's index, or none does. */
export class WrongIncarnationError extends errorClass("sliver.incarnation") {}

/** The machine lacks something that all slivers need, or its setup conflicts with slivers. */
export class MachineError extends errorClass("sliver.machine") {}

/** The disk limits exceed the pool, or an image does not fit. */
export class PoolFullError extends errorClass("sliver.pool_full") {}

/** An image that is not configured, or whose archive cannot be used. */
export class ImageError extends errorClass("sliver.image") {}

/** A cache that is not there, or cannot be kept. */
export class CacheError extends errorClass("sliver.cache") {}

/** Text that must not reach an interpreter that runs as root (rule 11). */
export class UnsafeTextError extends errorClass("sliver.unsafe_text") {}

/** The daemon's configuration cannot be used. The message names the file, the key and the remedy. */
export class DaemonConfigError extends errorClass("sliver.config") {}

/** Another sliverd runs on this state folder or on this machine. */
export class AlreadyRunningError extends NodeyardError {
  /** `where`: for instance `in /var/lib/sliverd`. */
  constructor(where: string, options?: { readonly cause?: unknown }) {
    super("sliver.running", `another sliverd runs ${where}; stop it first`, options);
  }
}

/** The machine cannot become a sliver host, or cannot stop being one. The message names the obstacle and the remedy. */
export class EnrolError extends errorClass("sliver.enrol") {}

/** A path of the forwarder that an authorized_keys line cannot contain. */
export class ForwarderPathError extends errorClass("sliver.forwarder_path") {}

/** The configuration makes the API listen on an address that other machines can reach. */
export class NotLoopbackError extends errorClass("sliver.not_loopback") {}

/** A text that is not XML-RPC, or a value that XML-RPC cannot represent. */
export class XmlRpcError extends errorClass("sliver.xmlrpc") {}
