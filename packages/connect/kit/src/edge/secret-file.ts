import { readFileSync } from "node:fs";
import { keepSecret, messageOf } from "@nodeyard/runtime";
import { ConnectConfigError } from "../errors.ts";

/** One word in a file, which no message and no log shows from then on. Throws ConnectConfigError that names the file alone. */
export function readSecret(path: string): string {
  const text = readKey(path);
  if (text === "" || /\s/.test(text))
    throw new ConnectConfigError(`${path} has to hold one word, the secret`);
  return text;
}

/** All of a file, such as a private key. The same holds for it. */
export function readKey(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (cause) {
    throw new ConnectConfigError(`cannot read ${path}: ${messageOf(cause)}`, { cause });
  }
  keepSecret(text, "configured");
  return text;
}
