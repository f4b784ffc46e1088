import { createPrivateKey, X509Certificate } from "node:crypto";
import { messageOf } from "@nodeyard/runtime";
import { ProcessError } from "../errors.ts";
import { readText } from "./files.ts";

/** How long before its expiry a certificate is reported, so that there is a working day to renew it. */
const SOON_MS = 14 * 86_400_000;

/**
 * Looks at the PEM files of a key of the configuration, as TLS would use them: a certificate, its private key and, where there is
 * one, the authority. Returns when the first of the certificates ends. Throws ProcessError for what does not work now (`now`:
 * milliseconds since the epoch), or will not in two weeks. Only the first certificate of each file is looked at.
 */
export function examineCertificates(
  place: string,
  files: { readonly cert: string; readonly key: string; readonly ca: string | null },
  now: number,
): Date {
  const cert = parsed(`${place}.cert`, files.cert, (text) => new X509Certificate(text));
  const key = parsed(`${place}.key`, files.key, (text) => createPrivateKey(text));
  const ca = files.ca === null ? [] : [parsed(`${place}.ca`, files.ca, (text) => new X509Certificate(text))];
  if (!cert.checkPrivateKey(key))
    throw wrong(`${place}: ${files.key} is not the key of ${files.cert}: name the one that it was made with`);
  for (const [certificate, file] of [
    [cert, files.cert] as const,
    ...ca.map((one) => [one, files.ca] as const),
  ]) {
    const { validFromDate, validToDate } = certificate;
    if (validFromDate.getTime() > now)
      throw wrong(
        `${place}: ${file} is valid only from ${validFromDate.toISOString()}: correct this machine's clock, or make a new one`,
      );
    if (validToDate.getTime() <= now)
      throw wrong(`${place}: ${file} ended at ${validToDate.toISOString()}: renew it`);
    if (validToDate.getTime() <= now + SOON_MS)
      throw wrong(`${place}: ${file} ends at ${validToDate.toISOString()}: renew it before`);
  }
  return [cert, ...ca]
    .map(({ validToDate }) => validToDate)
    .sort((one, other) => one.getTime() - other.getTime())[0]!;
}

/** What a file holds. Throws ProcessError where it is no PEM of this kind. */
function parsed<T>(place: string, file: string, parse: (text: string) => T): T {
  const text = readText(file, place);
  try {
    return parse(text);
  } catch (error) {
    throw wrong(
      `${place}: ${file} holds nothing usable in PEM (${messageOf(error)}): name another file`,
      error,
    );
  }
}

function wrong(message: string, cause?: unknown): ProcessError {
  return new ProcessError("process.certificate", message, { cause });
}
