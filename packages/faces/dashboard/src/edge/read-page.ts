import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

/** A file of the page as the HTTP listener serves it. */
export interface PageFile {
  /** Path below the listener's address: "/", "/assets/NAME". */
  readonly path: string;
  readonly type: string;
  readonly bytes: Buffer;
  /** The same content compressed, once per process, for clients that accept it. */
  readonly gzipped: Buffer;
  /** Digest of the content, in quotes. */
  readonly etag: string;
  /** Whether the content of this path never changes, because the name contains a digest. */
  readonly immutable: boolean;
}

/** Folder of the built page in an installed package. */
const BUILT = fileURLToPath(new URL("../../page", import.meta.url));
/** Module that builds the page in a checkout. The installed package does not contain it, so it is imported only when needed. */
const MAKER = "../../build/make-page.ts";

/** Content types by the ending of the name. Browsers refuse scripts and styles with another type. */
const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8",
};

/**
 * The files of the page, whole in memory: they are few and small. Rejects when they are not built and cannot be, as in a checkout
 * without development dependencies.
 */
export async function readPage(): Promise<readonly PageFile[]> {
  const files = existsSync(BUILT) ? builtFiles() : await madeFiles();
  return Promise.all([...files].map(([name, bytes]) => pageFile(name, bytes)));
}

function builtFiles(): ReadonlyMap<string, Buffer> {
  return new Map(readdirSync(BUILT).map((name) => [name, readFileSync(join(BUILT, name))]));
}

async function madeFiles(): Promise<ReadonlyMap<string, Buffer>> {
  const { makePage } = await import(new URL(MAKER, import.meta.url).href);
  return makePage();
}

async function pageFile(name: string, bytes: Buffer): Promise<PageFile> {
  // All other names have a digest of their content, which index.html refers to.
  const immutable = name !== "index.html";
  return {
    path: immutable ? `/assets/${name}` : "/",
    type: TYPES[name.split(".").at(-1)!] ?? "application/octet-stream",
    bytes,
    gzipped: await promisify(gzip)(bytes, { level: 9 }),
    etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`,
    immutable,
  };
}
