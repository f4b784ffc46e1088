import { SliverFaultError, SliverUnreachableError } from "./errors.ts";
import type { NodeDocument, NodeReport } from "./report.ts";

/**
 * Sends the text of one request to the sliver manager and returns the answer: over its Unix socket, or through the forced
 * command of the control account. Rejects with SliverUnreachableError.
 */
export type Transport = (request: string, signal: AbortSignal) => Promise<string>;

/** A launcher's client for one sliver manager. Every method rejects with SliverUnreachableError or SliverFaultError. */
export class SliverClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Delivers a signed document. The answer means that the document is stored durably, not that it has been carried out. */
  async deliver(document: string, signal: AbortSignal): Promise<NodeReport> {
    return (await this.call("Deliver", [document], signal)) as NodeReport;
  }

  async status(signal: AbortSignal): Promise<NodeReport> {
    return (await this.call("Status", [], signal)) as NodeReport;
  }

  /** The next report after the one with this `sequence`; after half a minute without changes, the same report again. */
  async watch(sequence: number, signal: AbortSignal): Promise<NodeReport> {
    return (await this.call("Watch", [sequence], signal)) as NodeReport;
  }

  /** The document that a writer changes and delivers again. */
  async document(signal: AbortSignal): Promise<NodeDocument> {
    return (await this.call("GetDocument", [], signal)) as NodeDocument;
  }

  /** The end of a sliver's console, text of strangers; null: the machine has no such sliver, or it never ran. */
  async console(name: string, signal: AbortSignal): Promise<string | null> {
    const text = await this.call("Console", [name], signal);
    return typeof text === "string" ? text : null;
  }

  /** Replaces the key set. `keySet` must be signed with a key of the present one. */
  async rotateKeys(keySet: string, signal: AbortSignal): Promise<void> {
    await this.call("RotateKeys", [keySet], signal);
  }

  /** Calls any method of the manager's own API. */
  async call(method: string, params: readonly unknown[], signal: AbortSignal): Promise<unknown> {
    const text = await this.#transport(JSON.stringify({ method, params }), signal);
    const reply = replyOf(text);
    if (reply.fault !== undefined) throw new SliverFaultError(reply.fault.code, reply.fault.message);
    return reply.result;
  }
}

interface Reply {
  readonly result?: unknown;
  readonly fault?: { readonly code: number; readonly message: string };
}

function replyOf(text: string): Reply {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new SliverUnreachableError(
      `the sliver manager's answer is not valid JSON: ${JSON.stringify(text.slice(0, 80))}`,
      { cause },
    );
  }
  const { fault } = (value ?? {}) as { fault?: { code?: unknown; message?: unknown } };
  const known = typeof value === "object" && value !== null && (Object.hasOwn(value, "result") || fault);
  if (!known) throw new SliverUnreachableError("the sliver manager's answer has neither result nor fault");
  if (fault === undefined) return { result: (value as Reply).result };
  return { fault: { code: Number(fault.code), message: String(fault.message) } };
}
