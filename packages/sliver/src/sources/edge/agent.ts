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

/**
 * Connections by what `files` says at each call: whoever renews a certificate writes its file anew, and tells nobody. Throws what
 * `files` throws.
 */
export function agents(files: () => TlsFiles): () => Agent {
  let last: { readonly files: string; readonly agent: Agent } | undefined;
  return () => {
    const now = files();
    const text = JSON.stringify(now);
    // The former one's idle connections end by themselves.
    if (last?.files !== text) last = { files: text, agent: agentOf(now) };
    return last.agent;
  };
}

/** One context of `files` for all connections: the system's authorities are hundreds. */
function agentOf(files: TlsFiles): Agent {
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
