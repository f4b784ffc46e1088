import { readFileSync } from "node:fs";
import { ConnectConfigError } from "@nodeyard/connect";
import { messageOf } from "@nodeyard/runtime";

/** Paths of PEM files. */
export interface CertificatePaths {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** The text of each. Throws ConnectConfigError that names the file. */
export function readCertificates(paths: CertificatePaths): CertificatePaths {
  const read = (path: string) => {
    try {
      return readFileSync(path, "utf8");
    } catch (cause) {
      throw new ConnectConfigError(`cannot read ${path}: ${messageOf(cause)}`, { cause });
    }
  };
  return { ca: read(paths.ca), cert: read(paths.cert), key: read(paths.key) };
}
