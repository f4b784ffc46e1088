import type { PageFile } from "@nodeyard/dashboard";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { takesGzip } from "./gzip.ts";

/** No other host, no inline script or style, no frame: what a job wrote into a record can neither run nor be sent away. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types nodeyard";
const HEADERS = {
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  vary: "accept-encoding",
};
/** Names of the routes, as the router has them. They need no token: a browser has none before the user logs in. */
export const PAGE_PATHS: ReadonlySet<string> = new Set(["/", "/assets/:name"]);

/** Serves the files of the page (docs/design/page.md). They are public: all data on the page comes from REST v1. */
export function addPage(app: FastifyInstance): void {
  let reading: Promise<ReadonlyMap<string, PageFile>> | undefined;
  const files = () => {
    reading ??= readFiles();
    reading.catch(() => {
      reading = undefined;
    });
    return reading;
  };
  const send = async (request: FastifyRequest, reply: FastifyReply) => {
    const file = (await files()).get(request.url.split("?", 1)[0]!);
    return file === undefined ? reply.callNotFound() : sendFile(file, request, reply);
  };
  for (const url of PAGE_PATHS) app.route({ method: ["GET", "HEAD"], url, handler: send });
}

/** Read at the first call: most listeners are never visited by a browser. */
async function readFiles(): Promise<ReadonlyMap<string, PageFile>> {
  const { readPage } = await import("@nodeyard/dashboard");
  return new Map((await readPage()).map((file) => [file.path, file]));
}

/** Packed ahead: the files are the same for all, and packing each time would cost the launcher. */
function sendFile(file: PageFile, { headers }: FastifyRequest, reply: FastifyReply): FastifyReply {
  // index.html names the other files: a browser asks whether it still is the same, and never mixes two releases.
  const cache = file.immutable ? "public, max-age=31536000, immutable" : "no-cache";
  reply.headers({ ...HEADERS, "cache-control": cache, etag: file.etag });
  if (headers["if-none-match"]?.includes(file.etag)) return reply.code(304).send();
  const isGzip = takesGzip(headers);
  if (isGzip) reply.header("content-encoding", "gzip");
  return reply.type(file.type).send(isGzip ? file.gzipped : file.bytes);
}
