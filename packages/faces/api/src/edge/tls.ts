import { readFileSync } from "node:fs";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { messageOf } from "@nodeyard/runtime";
import { ListenError } from "../errors.ts";

/** PEM files of a listener. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** Clients need a certificate of this authority; null: they need none. */
  readonly ca: string | null;
}

/**
 * What the files hold, once it is known to be usable: a listener that is open must not get a certificate with which no client can
 * connect. Throws ListenError.
 */
export function readTls({ cert, key, ca }: TlsFiles): SecureContextOptions {
  try {
    const options: SecureContextOptions = {
      cert: readFileSync(cert),
      key: readFileSync(key),
      ...(ca === null ? {} : { ca: readFileSync(ca) }),
      // RFC 8996 forbids older versions.
      minVersion: "TLSv1.2",
    };
    // Fails for a key of another certificate, too.
    createSecureContext(options);
    return options;
  } catch (error) {
    throw new ListenError(
      `cannot use the certificate ${cert} with the key ${key} (${messageOf(error)}); correct webapp.tls in the configuration, or the files`,
      { cause: error },
    );
  }
}
