import { Agent } from "node:https";
import { createSecureContext, getCACertificates } from "node:tls";

/** PEM texts. */
export interface TlsFiles {
  /** Authorities that may vouch for the place; absent: the system's. */
  readonly ca?: string;
  /** This node's own certificate and key, for places that ask. */
  readonly cert?: string;
  readonly key?: string;
}

/** Milliseconds that a connection is kept for the next call: a poll and its report. */
const IDLE_MS = 5_000;

/** Connections by `files`, which are read into one context: the system's authorities are hundreds. */
export function agentOf(files: TlsFiles): Agent {
  const secureContext = createSecureContext({ ...files, ...systemOr(files.ca) });
  return new Agent({ secureContext, keepAlive: true, timeout: IDLE_MS });
}

/** Node's own default are the authorities that it was built with, and it knows none of the site's. */
function systemOr(ca: string | undefined): { readonly ca?: string | string[] } {
  if (ca !== undefined) return { ca };
  const system = getCACertificates("system");
  // A machine that has none at all is left what Node has.
  return system.length === 0 ? {} : { ca: system };
}
