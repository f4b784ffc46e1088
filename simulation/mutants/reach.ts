import { fileURLToPath } from "node:url";
import { endOf, onDisk } from "./files.ts";
import { isSyntax, placesOf } from "./syntax.ts";

/** What a test file reached: names as in `reachedName`. */
export interface FileReach {
  /** Below the root, without its ending. */
  readonly file: string;
  readonly ms: number;
  readonly reached: readonly string[];
}

/** The set of a test's process in which functions say that they were called. */
const REACHED = "nodeyardReached";

/** At the end of a test file: what its tests called comes with its result. */
const REPORT = `
import { afterAll as reachAfter, beforeAll as reachBefore } from "vitest";
reachBefore(() => void (globalThis.${REACHED} = new Set()));
reachAfter(({}, file) => void (file.meta.reached = [...globalThis.${REACHED}]));
`;

export function reachedName(at: string, name: string): string {
  return `${at} ${name}`;
}

/** Of a room's sources each function says that it was called: a fault in it can be caught only by a test that calls it. */
export function reachPlugin(sources: ReadonlyMap<string, string>) {
  const ends = new Map([...sources].map(([file, room]) => [onDisk(file), endOf(file, room)]));
  return {
    name: "reach",
    enforce: "pre" as const,
    transform(code: string, id: string) {
      const path = (id.startsWith("file:") ? fileURLToPath(id) : id).split("?", 1)[0]!;
      if (path.endsWith(".test.ts")) return { code: code + REPORT, map: null };
      const at = ends.get(path);
      return at === undefined ? undefined : { code: marked(code, at), map: null };
    },
  };
}

function marked(source: string, at: string): string {
  const inserts: (readonly [offset: number, text: string])[] = [];
  for (const { node, function: name } of placesOf(source)) {
    const { type, body } = node;
    if (!/Function(Expression|Declaration)$/.test(type) || !isSyntax(body)) continue;
    const mark = `globalThis.${REACHED}?.add(${JSON.stringify(reachedName(at, name))})`;
    if (body.type === "BlockStatement") inserts.push([body.start + 1, `${mark};`]);
    else inserts.push([body.start, `(${mark}, `], [body.end, ")"]);
  }
  // From the end, so that the offsets before stay true.
  return inserts
    .sort(([one], [other]) => other - one)
    .reduce((text, [offset, part]) => text.slice(0, offset) + part + text.slice(offset), source);
}
