import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { messageOf } from "@nodeyard/runtime";
import { DaemonConfigError } from "../../errors.ts";
import type { TlsFiles } from "../../sources/edge/http.ts";

/** PEM files by purpose. The configuration key of each is `<purpose>File`. */
export type TlsPaths = { readonly [name in keyof TlsFiles]?: string | undefined };

/**
 * Reads the PEM files that keys of `place` name. An unusable file is reported with its place and a remedy, because errors of TLS name
 * neither. Throws DaemonConfigError.
 */
export function readTls(place: string, paths: TlsPaths): TlsFiles {
  const ca = read(`${place}.caFile`, paths.ca, certificateOf);
  const cert = read(`${place}.certFile`, paths.cert, certificateOf);
  const key = read(`${place}.keyFile`, paths.key, keyOf);
  if (cert !== undefined && key !== undefined && !cert.value.checkPrivateKey(key.value))
    throw new DaemonConfigError(
      `${place}.keyFile: ${paths.key} is not the key of the certificate in ${paths.cert}; name the one that it was made with`,
    );
  const texts = { ca: ca?.text, cert: cert?.text, key: key?.text };
  return Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== undefined));
}

/** Reads and parses one file; undefined when none is configured. Throws DaemonConfigError, which names the key of the configuration. */
function read<T>(
  place: string,
  file: string | undefined,
  parse: (text: string) => T,
): { readonly text: string; readonly value: T } | undefined {
  if (file === undefined) return undefined;
  const text = readPem(place, file);
  try {
    return { text, value: parse(text) };
  } catch (cause) {
    const what =
      parse === certificateOf ? "certificate" : "private key that can be read without a passphrase";
    const why = (cause as { reason?: unknown }).reason ?? messageOf(cause);
    throw new DaemonConfigError(`${place}: ${file} holds no ${what} (${why}); name a PEM file with one`, {
      cause,
    });
  }
}

/** The first certificate of the file. The others are its chain, which clients check. */
function certificateOf(text: string): X509Certificate {
  return new X509Certificate(text);
}

/** Throws for a key with a passphrase: nobody is there to type it. */
function keyOf(text: string): KeyObject {
  return createPrivateKey(text);
}

/** A key that is a line of text. Throws DaemonConfigError. */
export function readSecret(place: string, file: string): string {
  const text = textOf(place, file, "the file with the key").trim();
  if (!/^[\x21-\x7e]{1,512}$/.test(text))
    throw new DaemonConfigError(`${place}: ${file} holds no key; write it there, on one line`);
  return text;
}

/** Says so when a file is no PEM at all, such as a DER file: OpenSSL's message would not. */
function readPem(place: string, file: string): string {
  const text = textOf(place, file, "a PEM file");
  if (!/^-----BEGIN [A-Z ]+-----$/m.test(text))
    throw new DaemonConfigError(`${place}: ${file} holds nothing in PEM; it begins with -----BEGIN`);
  return text;
}

function textOf(place: string, file: string, what: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new DaemonConfigError(`${place}: ${file} cannot be read (${code}); name ${what}`, { cause });
  }
}
