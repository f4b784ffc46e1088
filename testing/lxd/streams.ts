import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream, readFileSync, statSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import { output } from "../qemu/index.ts";
import { lxdImage } from "./image.ts";
import type { LxdServer } from "./server.ts";

const INDEX = "streams/v1/index.json";
const PRODUCTS = "streams/v1/images.json";
const IMAGE = "images/tiny.tar.gz";

/** A server of images with the test image under an alias, which one LXD reaches. */
export interface Streams {
  readonly url: string;
  /** File of its certificate, which no authority has signed. */
  readonly certificate: string;
  /** Paths that were asked for. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** Starts one, which speaks simplestreams over HTTPS as `images.lxd.canonical.com` does. */
export async function startStreams(lxd: LxdServer, alias: string): Promise<Streams> {
  const { unified } = await lxdImage();
  const host = lxd.gateway;
  const [key, certificate] = [join(lxd.folder, "streams.key"), join(lxd.folder, "streams.crt")];
  const names = ["-subj", "/CN=streams", "-addext", `subjectAltName=IP:${host}`];
  const files = ["-keyout", key, "-out", certificate, "-days", "30", "-nodes"];
  await output("openssl", ["req", "-x509", "-newkey", "rsa:2048", ...files, ...names]);
  const sha256 = createHash("sha256").update(readFileSync(unified)).digest("hex");
  const item = { ftype: "lxd_combined.tar.gz", path: IMAGE, sha256, size: statSync(unified).size };
  const product = {
    ...{ aliases: alias, arch: "amd64", os: "Tiny", release: "1", release_title: "1", variant: "default" },
    versions: { "20260101_00:00": { items: { "lxd_combined.tar.gz": item } } },
  };
  const about = { datatype: "image-downloads", format: "products:1.0" };
  const products = { "tiny:1:amd64:default": product };
  const texts: Readonly<Record<string, object>> = {
    [INDEX]: {
      format: "index:1.0",
      index: { images: { ...about, path: PRODUCTS, products: Object.keys(products) } },
    },
    [PRODUCTS]: { ...about, content_id: "images", products },
  };
  const asked: string[] = [];
  const server = createServer(
    { key: readFileSync(key), cert: readFileSync(certificate) },
    ({ url = "/" }, answer) => {
      const path = url.slice(1);
      asked.push(path);
      if (path === IMAGE) createReadStream(unified).pipe(answer.writeHead(200));
      else if (texts[path] === undefined) answer.writeHead(404).end();
      else answer.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(texts[path]));
    },
  );
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as { readonly port: number };
  return {
    ...{ url: `https://${host}:${port}`, certificate, asked },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
