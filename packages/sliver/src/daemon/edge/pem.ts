import { readFileSync } from "node:fs";
import { DaemonConfigError } from "../errors.ts";

/** Text of a PEM file that the key `place` of the configuration names; undefined without one. Throws DaemonConfigError. */
export function readPem(place: string, file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new DaemonConfigError(`${place}: ${file} cannot be read (${code}); name a PEM file`, { cause });
  }
  if (!/^-----BEGIN [A-Z ]+-----$/m.test(text))
    throw new DaemonConfigError(`${place}: ${file} holds nothing in PEM; it begins with -----BEGIN`);
  return text;
}
