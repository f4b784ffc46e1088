import { NodeyardError } from "@nodeyard/runtime";

/** A document or ticket that is older than what the node has; nothing of it is applied. */
export class StaleDocumentError extends NodeyardError {
  constructor(message: string) {
    super("sliver.stale", message);
  }
}

/** Two different documents have the same epoch and version, so two launchers write for this node. Nothing is applied. */
export class ConflictingDocumentError extends NodeyardError {
  constructor(message: string) {
    super("sliver.conflict", message);
  }
}

/** A document that is for another node, or that cannot be read. */
export class WrongDocumentError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.document", message, options);
  }
}

/** A ticket that was used before, or that this node does not accept. */
export class TicketRefusedError extends NodeyardError {
  constructor(message: string) {
    super("sliver.ticket_refused", message);
  }
}

/** Too many changes wait; nothing was done. */
export class BusyError extends NodeyardError {
  constructor(message: string) {
    super("sliver.busy", message);
  }
}

/** A call was accepted and stored, but carrying it out failed or is not finished; it is retried. */
export class NotYetError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.not_yet", message, options);
  }
}

/** The store is of another node: a copied disk, or the wrong folder. */
export class ForeignStoreError extends NodeyardError {
  constructor(found: string, here: string) {
    super(
      "sliver.store_foreign",
      `the store is of node ${JSON.stringify(found)}, this is ${JSON.stringify(here)}; remove it, or name the right folder`,
    );
  }
}

/** The store was written by a later version of this program. */
export class NewerStoreError extends NodeyardError {
  constructor(schema: number, ours: number) {
    super(
      "sliver.store_newer",
      `the store has schema ${schema}, this program reads ${ours}; start the version that wrote it`,
    );
  }
}

/** The change may not be on disk, so it was not acknowledged. */
export class StoreWriteError extends NodeyardError {
  constructor(message: string, options: { readonly cause: unknown }) {
    super("sliver.store_write", message, options);
  }
}

/** The PLC server did not answer in time. */
export class PlcTimeoutError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.plc_unreachable", message, options);
  }
}

/** The PLC server answered with a fault, for example because the authentication expired. */
export class PlcFaultError extends NodeyardError {
  constructor(fault: string) {
    super("sliver.plc_fault", `the centre answered with a fault: ${fault}`);
  }
}

/** The URL of the documents did not answer in time. */
export class SourceUnreachableError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.source_unreachable", message, options);
  }
}

/** The URL of the documents served something else. */
export class SourceAnswerError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.source_answer", message, options);
  }
}

/** The node has no key set, so it accepts no signed document. */
export class NoKeysError extends NodeyardError {
  constructor() {
    super("sliver.no_keys", "this node has no key set; enrol it");
  }
}

/** A step of a back end exceeded its time limit. */
export class StepTimeoutError extends NodeyardError {
  constructor(message: string) {
    super("sliver.step_timeout", message);
  }
}

/** A step was not started, because a sliver that has to give something back first could not. */
export class LenderStuckError extends NodeyardError {
  constructor(message: string) {
    super("sliver.lender_stuck", message);
  }
}

/** The manager is being stopped. */
export class StoppingError extends NodeyardError {
  constructor() {
    super(
      "sliver.stopping",
      "the sliver manager is stopping; unfinished work continues after its next start",
    );
  }
}

/** A program that a back end needs failed, or is not installed. */
export class CommandError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.command", message, options);
  }
}

/** The sliver's index is used by another incarnation, or by none. */
export class WrongIncarnationError extends NodeyardError {
  constructor(message: string) {
    super("sliver.incarnation", message);
  }
}

/** The machine lacks something that every sliver needs, or its setup conflicts with slivers. */
export class MachineError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.machine", message, options);
  }
}

/** The disk limits sum to more than the pool, or an image does not fit. */
export class PoolFullError extends NodeyardError {
  constructor(message: string) {
    super("sliver.pool_full", message);
  }
}

/** An image that is not configured, or whose archive is not a usable image. */
export class ImageError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.image", message, options);
  }
}

/** Text that must not reach an interpreter that runs as root. */
export class UnsafeTextError extends NodeyardError {
  constructor(message: string) {
    super("sliver.unsafe_text", message);
  }
}

/** The daemon's configuration cannot be used; the message names the file, the key and what to do. */
export class DaemonConfigError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.config", message, options);
  }
}

/** Another sliverd runs on this state folder, or on this machine. */
export class AlreadyRunningError extends NodeyardError {
  /** As `in /var/lib/sliverd`. */
  constructor(where: string, options?: { readonly cause?: unknown }) {
    super("sliver.running", `another sliverd runs ${where}; stop it first`, options);
  }
}

/** The machine cannot become a sliver host, or stop being one; the message names the obstacle and what to do. */
export class EnrolError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.enrol", message, options);
  }
}

/** A forwarder path that cannot stand in an authorized_keys line. */
export class ForwarderPathError extends NodeyardError {
  constructor(path: string) {
    super(
      "sliver.forwarder_path",
      `the forwarder ${JSON.stringify(path)} must be an absolute path of letters, digits and ._/-`,
    );
  }
}

/** The API was configured to listen on an address that other machines can reach. */
export class NotLoopbackError extends NodeyardError {
  constructor(host: string) {
    super("sliver.not_loopback", `the API listens on loopback only, not on ${host}; reach it over SSH`);
  }
}

/** A text that is not XML-RPC, or a value that XML-RPC cannot represent. */
export class XmlRpcError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.xmlrpc", message, options);
  }
}
