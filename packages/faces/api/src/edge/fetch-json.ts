/** The longest answer of an issuer, bytes: it is read into memory before it is known to be what it should be. */
const MAX_BYTES = 256 * 1_024;

/**
 * The JSON at a URL, without redirects: an issuer that was configured must not send the process to another host. Rejects with an
 * Error that says why not, or with the reason of `signal`.
 */
export async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const reply = await fetch(url, { redirect: "error", signal, headers: { accept: "application/json" } });
  if (!reply.ok) throw new Error(`${url} answers ${reply.status}`);
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of reply.body ?? []) {
    bytes += part.length;
    if (bytes > MAX_BYTES) throw new Error(`${url} answers more than ${MAX_BYTES} bytes`);
    parts.push(part);
  }
  return JSON.parse(Buffer.concat(parts).toString());
}
