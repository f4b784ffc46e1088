import { NodeyardError } from "@nodeyard/runtime";

/** A text that is not XML-RPC, or a value that XML-RPC cannot represent. */
export class XmlRpcError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.xmlrpc", message, options);
  }
}
