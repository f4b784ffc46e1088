/**
 * Longest request, bytes, and its time limit (docs/contract/slivers.md, "The forwarding shell": 120 s and 1 MiB). Documents need more than
 * 1 MiB.
 */
const MAX_REQUEST = 10 * 1024 * 1024;
const TIMEOUT = 120_000;

/** Output and exit code of the forwarder. The exit code is 1 when it reached no manager. */
export interface Forwarded {
  readonly text: string;
  readonly exitCode: 0 | 1;
}

/**
 * The forced command of control accounts, in place of the old login shell: sends one call from `input` to the account's socket and returns
 * the answer. A call that begins with `{` is JSON, any other XML-RPC. Never rejects: failures are faults in the same format.
 */
export async function forward(socketPath: string, input: AsyncIterable<Uint8Array>): Promise<Forwarded> {
  let json = false;
  try {
    const body = await collect(input);
    const first = body.toString("latin1", 0, 64).trimStart()[0];
    if (first === undefined) throw new Error("read: the request is empty");
    json = first === "{";
    const answer = await post(socketPath, json ? "/json" : "/", json ? "application/json" : "text/xml", body);
    return { text: answer, exitCode: 0 };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { text: json ? jsonFault(text) : xmlFault(text), exitCode: 1 };
  }
}

async function collect(input: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of input) {
    size += chunk.length;
    if (size > MAX_REQUEST) throw new Error(`read: the request is longer than ${MAX_REQUEST} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function post(socketPath: string, path: string, type: string, body: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": type, "content-length": body.length, connection: "close" };
    const options = { socketPath, path, method: "POST", headers, timeout: TIMEOUT };
    // Not by an import, for the reason that packages/base/runtime/src/edge/node-http.ts gives.
    const call = process.getBuiltinModule("node:http").request(options, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("error", reject);
      answer.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        if (answer.statusCode === 200) resolve(text);
        else reject(new Error(`read: HTTP ${answer.statusCode} ${text.trim().slice(0, 100)}`));
      });
    });
    call.on("timeout", () => call.destroy(new Error(`read: no answer within ${TIMEOUT / 1000} s`)));
    call.on("error", (error) => reject(new Error(`connect: ${error.message}`, { cause: error })));
    call.end(body);
  });
}

function jsonFault(message: string): string {
  return JSON.stringify({ fault: { code: 1, message } });
}

/** Written without the codec, so that the forwarder loads as little code as possible. */
function xmlFault(message: string): string {
  const safe = message.replace(/[^\x20-\x7e]|[<&>]/g, "?");
  return (
    '<?xml version="1.0"?>\n<methodResponse><fault><value><struct>' +
    "<member><name>faultCode</name><value><int>1</int></value></member>" +
    `<member><name>faultString</name><value><string>${safe}</string></value></member>` +
    "</struct></value></fault></methodResponse>\n"
  );
}
