import { readFile } from "node:fs/promises";

const FILE = new URL("../guest/parked.sh", import.meta.url);

let text: Promise<string> | undefined;

/** The script that parks a guest. Read once: a guest is released by the one that parked it. */
export function parkedScript(): Promise<string> {
  text ??= readFile(FILE, "utf8");
  return text;
}
